/* What FMI 2.0 and 3.0 have in common; fmi2.c and fmi3.c include it after `struct component` and `refused`.
 *
 * FMI(name) is a name with the prefix of the version. Where the versions differ in a name, the file that includes this
 * one maps the name of 3.0 to that of 2.0. */

FMI(Status) FMI(SetDebugLogging)(void *i, FMI(Boolean) on, size_t n, const FMI(String) categories[])
{
    (void)i, (void)on, (void)n, (void)categories;
    return FMI(OK);
}

/* Notes the mode of a new component; frees it and returns NULL if the token is that of another model. */
static struct component *checked(struct component *c, const char *token, bool exchange)
{
    c->exchange = exchange;
    if (!token || strcmp(token, TOKEN) != 0) {
        refused(c, "the token (GUID) is that of another model");
        free(c);
        return NULL;
    }
    if (exchange && !EXCHANGE) {
        refused(c, "model exchange: wires and boards have memory and steps of their own: use co-simulation");
        free(c);
        return NULL;
    }
    unit_reset(&c->unit);
    return c;
}

void FMI(FreeInstance)(void *i) { free(i); }

static FMI(Status) initialise(struct component *c)
{
    if (c->unit.mode != BEFORE)
        return refused(c, "initialisation: only once, after instantiation or reset");
    c->unit.mode = INITIALISING;
    unit_rest(&c->unit);
    return FMI(OK);
}

FMI(Status) FMI(ExitInitializationMode)(void *i)
{
    struct component *c = i;
    if (c->unit.mode != INITIALISING)
        return refused(c, "initialisation has not begun");
    if (!unit_rest(&c->unit))
        return refused(c, "a board refuses its limits: one is out of its range");
    if (c->exchange) {
        unit_switch(&c->unit);
        unit_outputs(&c->unit);
    }
    c->unit.mode = RUNNING;
    return FMI(OK);
}

FMI(Status) FMI(EnterEventMode)(void *i)
{
    (void)i;
    return FMI(OK);
}

FMI(Status) FMI(Terminate)(void *i)
{
    ((struct component *)i)->unit.mode = TERMINATED;
    return FMI(OK);
}

FMI(Status) FMI(Reset)(void *i)
{
    unit_reset(&((struct component *)i)->unit);
    return FMI(OK);
}

static FMI(Status) get(struct component *c, const FMI(ValueReference) references[], size_t n, double values[])
{
    if (c->exchange || c->unit.mode != RUNNING)
        unit_outputs(&c->unit);
    for (size_t k = 0; k < n; k++)
        if (!unit_get(&c->unit, references[k], &values[k]))
            return refused(c, "no variable of this reference");
    return FMI(OK);
}

static FMI(Status) set(struct component *c, const FMI(ValueReference) references[], size_t n, const double values[])
{
    for (size_t k = 0; k < n; k++) {
        if (unit_set(&c->unit, references[k], values[k]))
            continue;
        char text[160];
        snprintf(text, sizeof text,
                 "variable %lu cannot be set to %g: see its range; parameters are set before the run",
                 (unsigned long)references[k], values[k]);
        return refused(c, text);
    }
    return FMI(OK);
}

/* State: a copy of the unit. */
FMI(Status) FMI(GetFMUState)(void *i, void **state)
{
    if (!*state && !(*state = malloc(sizeof(struct unit))))
        return refused(i, "out of memory");
    memcpy(*state, &((struct component *)i)->unit, sizeof(struct unit));
    return FMI(OK);
}

FMI(Status) FMI(SetFMUState)(void *i, void *state)
{
    memcpy(&((struct component *)i)->unit, state, sizeof(struct unit));
    unit_moved(&((struct component *)i)->unit);
    return FMI(OK);
}

FMI(Status) FMI(FreeFMUState)(void *i, void **state)
{
    (void)i;
    free(*state);
    *state = NULL;
    return FMI(OK);
}

FMI(Status) FMI(SerializedFMUStateSize)(void *i, void *state, size_t *size)
{
    (void)i, (void)state;
    *size = sizeof(struct unit);
    return FMI(OK);
}

FMI(Status) FMI(SerializeFMUState)(void *i, void *state, FMI(Byte) bytes[], size_t size)
{
    if (size < sizeof(struct unit))
        return refused(i, "too small for the state");
    memcpy(bytes, state, sizeof(struct unit));
    return FMI(OK);
}

FMI(Status) FMI(DeserializeFMUState)(void *i, const FMI(Byte) bytes[], size_t size, void **state)
{
    if (size != sizeof(struct unit))
        return refused(i, "the state of another unit");
    if (!*state && !(*state = malloc(sizeof(struct unit))))
        return refused(i, "out of memory");
    memcpy(*state, bytes, sizeof(struct unit));
    return FMI(OK);
}

/* Model exchange */
FMI(Status) FMI(EnterContinuousTimeMode)(void *i)
{
    (void)i;
    return FMI(OK);
}

FMI(Status) FMI(CompletedIntegratorStep)(void *i, FMI(Boolean) no_return, FMI(Boolean) *event, FMI(Boolean) *terminate)
{
    (void)i, (void)no_return;
    *event = *terminate = FMI(False);
    return FMI(OK);
}

FMI(Status) FMI(SetTime)(void *i, double time)
{
    ((struct component *)i)->unit.time_s = time;
    return FMI(OK);
}

FMI(Status) FMI(SetContinuousStates)(void *i, const double states[], size_t n)
{
    struct component *c = i;
    if (n != N_STATES)
        return refused(c, "the unit has another number of states");
    memcpy(c->unit.state, states, n * sizeof *states);
    return FMI(OK);
}

FMI(Status) FMI(GetContinuousStates)(void *i, double states[], size_t n)
{
    struct component *c = i;
    if (n != N_STATES)
        return refused(c, "the unit has another number of states");
    memcpy(states, c->unit.state, n * sizeof *states);
    return FMI(OK);
}

FMI(Status) FMI(GetContinuousStateDerivatives)(void *i, double derivatives[], size_t n)
{
    struct component *c = i;
    if (n != N_STATES)
        return refused(c, "the unit has another number of states");
    unit_derivatives(&c->unit, derivatives);
    return FMI(OK);
}

FMI(Status) FMI(GetNominalsOfContinuousStates)(void *i, double nominals[], size_t n)
{
    if (n != N_STATES)
        return refused(i, "the unit has another number of states");
    memcpy(nominals, NOMINAL, n * sizeof *nominals);
    return FMI(OK);
}

FMI(Status) FMI(GetEventIndicators)(void *i, double indicators[], size_t n)
{
    struct component *c = i;
    if (n != N_INDICATORS)
        return refused(c, "the unit has another number of event indicators");
    unit_indicators(&c->unit, indicators);
    return FMI(OK);
}

/* Co-simulation: one step of communication, or of any whole number of periods. */
static FMI(Status) advance(struct component *c, double time, double step)
{
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
    return FMI(OK);
}
