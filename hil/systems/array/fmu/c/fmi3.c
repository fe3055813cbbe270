/* The interface of FMI 3.0: co-simulation and model exchange. Source: FMI 3.0.2, sections 2 to 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi3Functions.h"
#include "unit.h"

struct component {
    struct unit unit;
    bool exchange; /* model exchange, not co-simulation */
    fmi3InstanceEnvironment environment;
    fmi3LogMessageCallback log;
};

static fmi3Status refused(struct component *c, const char *why)
{
    if (c->log)
        c->log(c->environment, fmi3Error, "logStatusError", why);
    return fmi3Error;
}

#define FMI(name) fmi3##name
#include "shared.h"

static struct component *instantiate(fmi3String token, bool exchange, fmi3InstanceEnvironment environment,
                                     fmi3LogMessageCallback log)
{
    struct component *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->environment = environment;
    c->log = log;
    return checked(c, token, exchange);
}

const char *fmi3GetVersion(void) { return "3.0"; }

fmi3Instance fmi3InstantiateModelExchange(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                          fmi3Boolean logging, fmi3InstanceEnvironment environment,
                                          fmi3LogMessageCallback log)
{
    (void)name, (void)resources, (void)visible, (void)logging;
    return instantiate(token, true, environment, log);
}

fmi3Instance fmi3InstantiateCoSimulation(fmi3String name, fmi3String token, fmi3String resources, fmi3Boolean visible,
                                         fmi3Boolean logging, fmi3Boolean events, fmi3Boolean early,
                                         const fmi3ValueReference required[], size_t n_required,
                                         fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                         fmi3IntermediateUpdateCallback update)
{
    (void)name, (void)resources, (void)visible, (void)logging, (void)events, (void)early, (void)required;
    (void)n_required, (void)update;
    return instantiate(token, false, environment, log);
}

fmi3Instance fmi3InstantiateScheduledExecution(fmi3String name, fmi3String token, fmi3String resources,
                                               fmi3Boolean visible, fmi3Boolean logging,
                                               fmi3InstanceEnvironment environment, fmi3LogMessageCallback log,
                                               fmi3ClockUpdateCallback update, fmi3LockPreemptionCallback lock,
                                               fmi3UnlockPreemptionCallback unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment, (void)log;
    (void)update, (void)lock, (void)unlock;
    return NULL;
}

fmi3Status fmi3EnterInitializationMode(fmi3Instance i, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
                                       fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop)
{
    struct component *c = i;
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    fmi3Status found = initialise(c);
    if (found == fmi3OK)
        c->unit.time_s = start;
    return found;
}

fmi3Status fmi3GetFloat64(fmi3Instance i, const fmi3ValueReference references[], size_t n, fmi3Float64 values[],
                          size_t n_values)
{
    return n == n_values ? get(i, references, n, values) : refused(i, "one value for every reference");
}

fmi3Status fmi3SetFloat64(fmi3Instance i, const fmi3ValueReference references[], size_t n, const fmi3Float64 values[],
                          size_t n_values)
{
    return n == n_values ? set(i, references, n, values) : refused(i, "one value for every reference");
}

/* The unit has no variables of these types. */
#define NO_VARIABLES(TYPE)                                                                                            \
    fmi3Status fmi3Get##TYPE(fmi3Instance i, const fmi3ValueReference r[], size_t n, fmi3##TYPE v[], size_t n_v)      \
    {                                                                                                                 \
        (void)r, (void)v, (void)n_v;                                                                                  \
        return n ? refused(i, "no variable of type " #TYPE) : fmi3OK;                                                 \
    }                                                                                                                 \
    fmi3Status fmi3Set##TYPE(fmi3Instance i, const fmi3ValueReference r[], size_t n, const fmi3##TYPE v[], size_t n_v) \
    {                                                                                                                 \
        (void)r, (void)v, (void)n_v;                                                                                  \
        return n ? refused(i, "no variable of type " #TYPE) : fmi3OK;                                                 \
    }
NO_VARIABLES(Float32)
NO_VARIABLES(Int8)
NO_VARIABLES(UInt8)
NO_VARIABLES(Int16)
NO_VARIABLES(UInt16)
NO_VARIABLES(Int32)
NO_VARIABLES(UInt32)
NO_VARIABLES(Int64)
NO_VARIABLES(UInt64)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

/* Functions of which modelDescription.xml says that the unit does not have them. */
#define ABSENT(NAME, ...)                                                                                             \
    fmi3Status NAME(fmi3Instance i, __VA_ARGS__) { return refused(i, #NAME ": not provided by this unit"); }

typedef const fmi3ValueReference references_t[];
_Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")
ABSENT(fmi3GetBinary, references_t r, size_t n, size_t s[], fmi3Binary v[], size_t m)
ABSENT(fmi3SetBinary, references_t r, size_t n, const size_t s[], const fmi3Binary v[], size_t m)
ABSENT(fmi3GetClock, references_t r, size_t n, fmi3Clock v[])
ABSENT(fmi3SetClock, references_t r, size_t n, const fmi3Clock v[])
ABSENT(fmi3GetNumberOfVariableDependencies, fmi3ValueReference r, size_t *n)
ABSENT(fmi3GetVariableDependencies, fmi3ValueReference r, size_t e[], fmi3ValueReference v[], size_t f[],
       fmi3DependencyKind k[], size_t n)
ABSENT(fmi3GetDirectionalDerivative, references_t u, size_t n_u, references_t r, size_t n_r, const fmi3Float64 s[],
       size_t n_s, fmi3Float64 v[], size_t n_v)
ABSENT(fmi3GetAdjointDerivative, references_t u, size_t n_u, references_t r, size_t n_r, const fmi3Float64 s[],
       size_t n_s, fmi3Float64 v[], size_t n_v)
ABSENT(fmi3GetIntervalDecimal, references_t r, size_t n, fmi3Float64 v[], fmi3IntervalQualifier q[])
ABSENT(fmi3GetIntervalFraction, references_t r, size_t n, fmi3UInt64 v[], fmi3UInt64 w[], fmi3IntervalQualifier q[])
ABSENT(fmi3GetShiftDecimal, references_t r, size_t n, fmi3Float64 v[])
ABSENT(fmi3GetShiftFraction, references_t r, size_t n, fmi3UInt64 v[], fmi3UInt64 w[])
ABSENT(fmi3SetIntervalDecimal, references_t r, size_t n, const fmi3Float64 v[])
ABSENT(fmi3SetIntervalFraction, references_t r, size_t n, const fmi3UInt64 v[], const fmi3UInt64 w[])
ABSENT(fmi3SetShiftDecimal, references_t r, size_t n, const fmi3Float64 v[])
ABSENT(fmi3SetShiftFraction, references_t r, size_t n, const fmi3UInt64 v[], const fmi3UInt64 w[])
ABSENT(fmi3GetOutputDerivatives, references_t r, size_t n, const fmi3Int32 o[], fmi3Float64 v[], size_t m)
ABSENT(fmi3ActivateModelPartition, fmi3ValueReference r, fmi3Float64 t)

fmi3Status fmi3EnterConfigurationMode(fmi3Instance i) { return refused(i, "no structural parameters"); }
fmi3Status fmi3ExitConfigurationMode(fmi3Instance i) { return refused(i, "no structural parameters"); }
fmi3Status fmi3EvaluateDiscreteStates(fmi3Instance i)
{
    (void)i;
    return fmi3OK;
}

fmi3Status fmi3UpdateDiscreteStates(fmi3Instance i, fmi3Boolean *again, fmi3Boolean *terminate, fmi3Boolean *nominals,
                                    fmi3Boolean *values, fmi3Boolean *next_defined, fmi3Float64 *next)
{
    struct component *c = i;
    if (c->exchange)
        unit_switch(&c->unit);
    *again = *terminate = *nominals = *values = *next_defined = fmi3False;
    *next = 0.0;
    return fmi3OK;
}

/* Model exchange */
fmi3Status fmi3GetNumberOfEventIndicators(fmi3Instance i, size_t *n)
{
    (void)i;
    *n = N_INDICATORS;
    return fmi3OK;
}

fmi3Status fmi3GetNumberOfContinuousStates(fmi3Instance i, size_t *n)
{
    (void)i;
    *n = N_STATES;
    return fmi3OK;
}

/* Co-simulation */
fmi3Status fmi3EnterStepMode(fmi3Instance i)
{
    (void)i;
    return fmi3OK;
}

fmi3Status fmi3DoStep(fmi3Instance i, fmi3Float64 time, fmi3Float64 step, fmi3Boolean no_return, fmi3Boolean *event,
                      fmi3Boolean *terminate, fmi3Boolean *early, fmi3Float64 *reached)
{
    (void)no_return;
    *event = *terminate = *early = fmi3False;
    fmi3Status found = advance(i, time, step);
    *reached = found == fmi3OK ? time + step : time;
    return found;
}
