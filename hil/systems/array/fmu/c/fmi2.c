/* The interface of FMI 2.0: co-simulation and model exchange. Source: FMI 2.0.4, sections 2 to 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fmi2Functions.h"
#include "unit.h"

struct component {
    struct unit unit;
    bool exchange; /* model exchange, not co-simulation */
    fmi2CallbackFunctions callbacks;
    char name[256];
};

static fmi2Status refused(struct component *c, const char *why)
{
    if (c->callbacks.logger)
        c->callbacks.logger(c->callbacks.componentEnvironment, c->name, fmi2Error, "logStatusError", "%s", why);
    return fmi2Error;
}

#define FMI(name) fmi2##name
#define fmi2GetFMUState fmi2GetFMUstate
#define fmi2SetFMUState fmi2SetFMUstate
#define fmi2FreeFMUState fmi2FreeFMUstate
#define fmi2SerializedFMUStateSize fmi2SerializedFMUstateSize
#define fmi2SerializeFMUState fmi2SerializeFMUstate
#define fmi2DeserializeFMUState fmi2DeSerializeFMUstate
#define fmi2GetContinuousStateDerivatives fmi2GetDerivatives
#include "shared.h"

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return "2.0"; }

fmi2Component fmi2Instantiate(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
                              const fmi2CallbackFunctions *callbacks, fmi2Boolean visible, fmi2Boolean logging)
{
    (void)resources, (void)visible, (void)logging;
    struct component *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    if (callbacks)
        c->callbacks = *callbacks;
    snprintf(c->name, sizeof c->name, "%s", name ? name : "");
    return checked(c, guid, type == fmi2ModelExchange);
}

fmi2Status fmi2SetupExperiment(fmi2Component i, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean has_stop, fmi2Real stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    ((struct component *)i)->unit.time_s = start;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component i) { return initialise(i); }

fmi2Status fmi2GetReal(fmi2Component i, const fmi2ValueReference references[], size_t n, fmi2Real values[])
{
    return get(i, references, n, values);
}

fmi2Status fmi2SetReal(fmi2Component i, const fmi2ValueReference references[], size_t n, const fmi2Real values[])
{
    return set(i, references, n, values);
}

/* The unit has no variables of these types. */
#define NO_VARIABLES(TYPE)                                                                                            \
    fmi2Status fmi2Get##TYPE(fmi2Component i, const fmi2ValueReference r[], size_t n, fmi2##TYPE v[])                 \
    {                                                                                                                 \
        (void)r, (void)v;                                                                                             \
        return n ? refused(i, "no variable of type " #TYPE) : fmi2OK;                                                 \
    }                                                                                                                 \
    fmi2Status fmi2Set##TYPE(fmi2Component i, const fmi2ValueReference r[], size_t n, const fmi2##TYPE v[])           \
    {                                                                                                                 \
        (void)r, (void)v;                                                                                             \
        return n ? refused(i, "no variable of type " #TYPE) : fmi2OK;                                                 \
    }
NO_VARIABLES(Integer)
NO_VARIABLES(Boolean)
NO_VARIABLES(String)

fmi2Status fmi2GetDirectionalDerivative(fmi2Component i, const fmi2ValueReference unknown[], size_t n_unknown,
                                        const fmi2ValueReference known[], size_t n_known, const fmi2Real in[],
                                        fmi2Real out[])
{
    (void)unknown, (void)n_unknown, (void)known, (void)n_known, (void)in, (void)out;
    return refused(i, "directional derivatives: not provided by this unit");
}

/* Model exchange */
fmi2Status fmi2NewDiscreteStates(fmi2Component i, fmi2EventInfo *info)
{
    unit_switch(&((struct component *)i)->unit);
    memset(info, 0, sizeof *info);
    return fmi2OK;
}

/* Co-simulation */
fmi2Status fmi2SetRealInputDerivatives(fmi2Component i, const fmi2ValueReference r[], size_t n, const fmi2Integer o[],
                                       const fmi2Real v[])
{
    (void)r, (void)n, (void)o, (void)v;
    return refused(i, "derivatives of inputs: not provided by this unit");
}

fmi2Status fmi2GetRealOutputDerivatives(fmi2Component i, const fmi2ValueReference r[], size_t n, const fmi2Integer o[],
                                        fmi2Real v[])
{
    (void)r, (void)n, (void)o, (void)v;
    return refused(i, "derivatives of outputs: not provided by this unit");
}

fmi2Status fmi2DoStep(fmi2Component i, fmi2Real time, fmi2Real step, fmi2Boolean no_return)
{
    (void)no_return;
    return advance(i, time, step);
}

fmi2Status fmi2CancelStep(fmi2Component i) { return refused(i, "every step is complete when it returns"); }

/* Steps are never pending. */
#define NO_STATUS(TYPE, VALUE)                                                                                        \
    fmi2Status fmi2Get##TYPE(fmi2Component i, const fmi2StatusKind kind, VALUE *value)                                \
    {                                                                                                                 \
        (void)i, (void)kind, (void)value;                                                                             \
        return fmi2Discard;                                                                                           \
    }
NO_STATUS(Status, fmi2Status)
NO_STATUS(RealStatus, fmi2Real)
NO_STATUS(IntegerStatus, fmi2Integer)
NO_STATUS(BooleanStatus, fmi2Boolean)
NO_STATUS(StringStatus, fmi2String)
