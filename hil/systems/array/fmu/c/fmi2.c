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

const char *fmi2GetTypesPlatform(void) { return fmi2TypesPlatform; }
const char *fmi2GetVersion(void) { return "2.0"; }

fmi2Status fmi2SetDebugLogging(fmi2Component i, fmi2Boolean on, size_t n, const fmi2String categories[])
{
    (void)i, (void)on, (void)n, (void)categories;
    return fmi2OK;
}

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
    c->exchange = type == fmi2ModelExchange;
    if (!guid || strcmp(guid, TOKEN) != 0) {
        refused(c, "the GUID is that of another model");
        free(c);
        return NULL;
    }
    unit_reset(&c->unit);
    return c;
}

void fmi2FreeInstance(fmi2Component i) { free(i); }

fmi2Status fmi2SetupExperiment(fmi2Component i, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
                               fmi2Boolean has_stop, fmi2Real stop)
{
    (void)has_tolerance, (void)tolerance, (void)has_stop, (void)stop;
    ((struct component *)i)->unit.time_s = start;
    return fmi2OK;
}

fmi2Status fmi2EnterInitializationMode(fmi2Component i)
{
    struct component *c = i;
    if (c->unit.mode != BEFORE)
        return refused(c, "initialisation: only once, after instantiation or reset");
    c->unit.mode = INITIALISING;
    unit_rest(&c->unit);
    return fmi2OK;
}

fmi2Status fmi2ExitInitializationMode(fmi2Component i)
{
    struct component *c = i;
    if (c->unit.mode != INITIALISING)
        return refused(c, "initialisation has not begun");
    unit_rest(&c->unit);
    if (c->exchange) {
        unit_switch(&c->unit);
        unit_outputs(&c->unit);
    }
    c->unit.mode = RUNNING;
    return fmi2OK;
}

fmi2Status fmi2Terminate(fmi2Component i)
{
    ((struct component *)i)->unit.mode = TERMINATED;
    return fmi2OK;
}

fmi2Status fmi2Reset(fmi2Component i)
{
    unit_reset(&((struct component *)i)->unit);
    return fmi2OK;
}

fmi2Status fmi2GetReal(fmi2Component i, const fmi2ValueReference references[], size_t n, fmi2Real values[])
{
    struct component *c = i;
    if (c->exchange || c->unit.mode != RUNNING)
        unit_outputs(&c->unit);
    for (size_t k = 0; k < n; k++)
        if (!unit_get(&c->unit, references[k], &values[k]))
            return refused(c, "no variable of this reference");
    return fmi2OK;
}

fmi2Status fmi2SetReal(fmi2Component i, const fmi2ValueReference references[], size_t n, const fmi2Real values[])
{
    struct component *c = i;
    for (size_t k = 0; k < n; k++) {
        if (unit_set(&c->unit, references[k], values[k]))
            continue;
        char text[160];
        snprintf(text, sizeof text,
                 "variable %u cannot be set to %g: a duty is 0 to 1, and parameters are set before the run",
                 references[k], values[k]);
        return refused(c, text);
    }
    return fmi2OK;
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

/* State: a copy of the unit. */
fmi2Status fmi2GetFMUstate(fmi2Component i, fmi2FMUstate *state)
{
    if (!*state && !(*state = malloc(sizeof(struct unit))))
        return refused(i, "out of memory");
    memcpy(*state, &((struct component *)i)->unit, sizeof(struct unit));
    return fmi2OK;
}

fmi2Status fmi2SetFMUstate(fmi2Component i, fmi2FMUstate state)
{
    memcpy(&((struct component *)i)->unit, state, sizeof(struct unit));
    return fmi2OK;
}

fmi2Status fmi2FreeFMUstate(fmi2Component i, fmi2FMUstate *state)
{
    (void)i;
    free(*state);
    *state = NULL;
    return fmi2OK;
}

fmi2Status fmi2SerializedFMUstateSize(fmi2Component i, fmi2FMUstate state, size_t *size)
{
    (void)i, (void)state;
    *size = sizeof(struct unit);
    return fmi2OK;
}

fmi2Status fmi2SerializeFMUstate(fmi2Component i, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    if (size < sizeof(struct unit))
        return refused(i, "too small for the state");
    memcpy(bytes, state, sizeof(struct unit));
    return fmi2OK;
}

fmi2Status fmi2DeSerializeFMUstate(fmi2Component i, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
{
    if (size != sizeof(struct unit))
        return refused(i, "the state of another unit");
    if (!*state && !(*state = malloc(sizeof(struct unit))))
        return refused(i, "out of memory");
    memcpy(*state, bytes, sizeof(struct unit));
    return fmi2OK;
}

fmi2Status fmi2GetDirectionalDerivative(fmi2Component i, const fmi2ValueReference unknown[], size_t n_unknown,
                                        const fmi2ValueReference known[], size_t n_known, const fmi2Real in[],
                                        fmi2Real out[])
{
    (void)unknown, (void)n_unknown, (void)known, (void)n_known, (void)in, (void)out;
    return refused(i, "directional derivatives: not provided by this unit");
}

/* Model exchange */
fmi2Status fmi2EnterEventMode(fmi2Component i)
{
    (void)i;
    return fmi2OK;
}

fmi2Status fmi2NewDiscreteStates(fmi2Component i, fmi2EventInfo *info)
{
    unit_switch(&((struct component *)i)->unit);
    memset(info, 0, sizeof *info);
    return fmi2OK;
}

fmi2Status fmi2EnterContinuousTimeMode(fmi2Component i)
{
    (void)i;
    return fmi2OK;
}

fmi2Status fmi2CompletedIntegratorStep(fmi2Component i, fmi2Boolean no_return, fmi2Boolean *event,
                                       fmi2Boolean *terminate)
{
    (void)i, (void)no_return;
    *event = *terminate = fmi2False;
    return fmi2OK;
}

fmi2Status fmi2SetTime(fmi2Component i, fmi2Real time)
{
    ((struct component *)i)->unit.time_s = time;
    return fmi2OK;
}

fmi2Status fmi2SetContinuousStates(fmi2Component i, const fmi2Real states[], size_t n)
{
    struct component *c = i;
    if (n != N_STATES)
        return refused(c, "the unit has another number of states");
    memcpy(c->unit.state, states, n * sizeof *states);
    return fmi2OK;
}

fmi2Status fmi2GetDerivatives(fmi2Component i, fmi2Real derivatives[], size_t n)
{
    struct component *c = i;
    if (n != N_STATES)
        return refused(c, "the unit has another number of states");
    unit_derivatives(&c->unit, derivatives);
    return fmi2OK;
}

fmi2Status fmi2GetEventIndicators(fmi2Component i, fmi2Real indicators[], size_t n)
{
    struct component *c = i;
    if (n != N_INDICATORS)
        return refused(c, "the unit has another number of event indicators");
    unit_indicators(&c->unit, indicators);
    return fmi2OK;
}

fmi2Status fmi2GetContinuousStates(fmi2Component i, fmi2Real states[], size_t n)
{
    struct component *c = i;
    if (n != N_STATES)
        return refused(c, "the unit has another number of states");
    memcpy(states, c->unit.state, n * sizeof *states);
    return fmi2OK;
}

fmi2Status fmi2GetNominalsOfContinuousStates(fmi2Component i, fmi2Real nominals[], size_t n)
{
    if (n != N_STATES)
        return refused(i, "the unit has another number of states");
    memcpy(nominals, NOMINAL, n * sizeof *nominals);
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
    struct component *c = i;
    (void)no_return;
    uint64_t periods = unit_periods(step);
    if (!periods || c->unit.mode != RUNNING) {
        char text[120];
        snprintf(text, sizeof text, "a step of %g s: give a whole number of periods of %g s, after initialisation",
                 step, PERIOD_S);
        return refused(c, text);
    }
    for (uint64_t k = 0; k < periods; k++)
        unit_step(&c->unit);
    c->unit.time_s = time + step;
    return fmi2OK;
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
