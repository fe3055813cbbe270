"""Errors as NI-DAQmx numbers them, with texts of this package, and errors of setting it up."""

INVALID_TASK = -200088
DUPLICATE_TASK = -200089
COUNTER_NEEDS_CLOCK = -200303
INVALID_DEVICE = -200220
NO_SUCH_CHANNEL = -200170
WRONG_CHANNEL_TYPE = -200430
WRONG_MEASUREMENT = -200431
WRONG_OUTPUT_TYPE = -200432
MIXED_CHANNEL_TYPES = -200559
CHANNEL_ALREADY_IN_TASK = -200489
CHANNEL_NOT_IN_TASK = -200486
NO_CHANNELS = -200478
BAD_NAME = -200428
BAD_VALUE = -200077
TOO_MANY_CHANNELS_FOR_RATE = -200081
RATE_TOO_LOW = -200331
RESERVED = -50103
LOST_DEVICE = -201003
BEFORE_FIRST_SAMPLE = -200277
BEYOND_LAST_SAMPLE = -200278
OVERWRITTEN = -200279
NOT_YET_THERE = -200284
NOT_YET_WRITTEN = -200292
NO_TIMESTAMP = -209842
NO_MORE_SPACE = -200293
WAIT_TIMED_OUT = -200560
NOT_RUNNING = -200983
RUNNING = -200479
PROPERTY_WHILE_RUNNING = -200557
PROPERTY_NOT_SUPPORTED = -200197
PROPERTY_NOT_IN_CONTEXT = -200452
FUNCTION_NOT_SUPPORTED = -209876
NO_WATCHDOG = -200662
WATCHDOG_EXPIRED = -200678
CHASSIS_EXPIRED = -201478
WATCHDOG_NOT_FIRST = -201477
REGISTER_WHILE_RUNNING = -200960
EVERY_N_REGISTERED = {True: -200966, False: -200967}  # by whether the task is an input
EVERY_N_WRONG_DIRECTION = {True: -200980, False: -200981}
EVERY_N_ZERO = -200880
EVERY_N_ON_DEMAND = -200848
BUFFER_NO_MULTIPLE = -200877
PAUSE_WITH_REFERENCE = -200628
PAUSE_ON_DEMAND = -200906
CHANGE_DETECTION_FOREIGN = -200926
CHANGE_DETECTION_OF_NOTHING = -200751
ONBOARD_TOO_SMALL = -200341
ONBOARD_WHILE_RUNNING = -200295
NO_TRIGGER_LINE = -89125
NO_ROUTE = -89136
DONE_REGISTERED = -200950
SIGNAL_REGISTERED = -200949
NO_BUFFER = -201062
WRITE_NOT_STARTED = -200846
WRITE_CHANNELS_DIFFER = -200524
LINES_DIFFER = -200463
REGENERATION_STARVED = -200290
NOTHING_WRITTEN = -200462
BAD_AO_DATA = -200561
NO_SUCH_SCALE = -200378
NO_SUCH_GLOBAL_CHANNEL = -200882
NO_SUCH_TERMINAL = -89120
UNKNOWN_DEVICE_IN_TERMINAL = -89130
START_TRIGGER_NOT_SUPPORTED = -200261
NO_CALIBRATION = -200546
NO_TEDS_FILE = -200784
BAD_TEDS = -200826
NO_TEDS_SENSOR = -200709
TEDS_OTHER_SENSOR = -200756
NO_ROSETTE_MEASUREMENT = -201448
ROSETTE_NEEDS_THREE = -201447
ROSETTE_NEEDS_TWO = -201446
TEDS_TEMPLATE_NOT_SUPPORTED = -200754
NOT_IN_STORAGE = -200485
EMPTY_POWER_UP_CHANNEL = -200626
POWER_UP_OF_INPUT = -200650
POWER_UP_MIXED = -200652
POWER_UP_TRISTATE = -201393
NO_POWER_UP_STATES = -200663
ARRAY_TOO_SMALL = -200229
TRIGGER_ON_DEMAND = -200262
NO_AI_MAX = -200695
NO_AI_MIN = -200696
OTHER_SCALE_TYPE = -200601
NO_DEVICE_CONTEXT = -201118
NO_SUCH_DESTINATION = -89121
NO_LOG_FILE = -201310
LOG_NEEDS_CLOCK = -201299
ONLY_LOGGED = -201301
DEFECT = -50202
ABORTED = -88710
REFERENCE_WHEN_CONTINUOUS = -200358
TOO_MANY_PRETRIGGER = -200213
NO_REFERENCE_TRIGGER = -200282
REFERENCE_NOT_YET = -200281

STOPPED_BEFORE_DONE = 200010

TEXTS = {
    COUNTER_NEEDS_CLOCK: "A counter has no sample clock of its own: name an external one.",
    DUPLICATE_TASK: "There is already a task of this name.",
    INVALID_TASK: "This task does not exist, or was closed.",
    INVALID_DEVICE: "No device of this name is present.",
    NO_SUCH_CHANNEL: "The device has no such physical channel.",
    WRONG_CHANNEL_TYPE: "The physical channel is of another type than the virtual channel.",
    WRONG_MEASUREMENT: "The physical channel cannot measure this.",
    WRONG_OUTPUT_TYPE: "The physical channel cannot generate this.",
    MIXED_CHANNEL_TYPES: "A task can contain channels of one type only.",
    CHANNEL_ALREADY_IN_TASK: "The task already has a channel of this name.",
    CHANNEL_NOT_IN_TASK: "The task has no channel of this name.",
    NO_CHANNELS: "The task has no channels.",
    BAD_NAME: "The name is empty or malformed.",
    BAD_VALUE: "Requested value is not a supported value for this property.",
    TOO_MANY_CHANNELS_FOR_RATE: "The converter cannot sample this many channels at this rate.",
    RATE_TOO_LOW: "The sample clock cannot run so slowly.",
    RESERVED: "The resource is reserved: another task holds it.",
    LOST_DEVICE: "The device cannot be accessed: it was unplugged, or lost power.",
    BEFORE_FIRST_SAMPLE: "A sample before the first one was asked for.",
    BEYOND_LAST_SAMPLE: "The samples are not available: the acquisition has ended.",
    OVERWRITTEN: "Samples were overwritten before they were read: read more often, read more at a "
    "time, sample more slowly, or enlarge the buffer.",
    NOT_YET_THERE: "Not all samples were available within the timeout.",
    NOT_YET_WRITTEN: "There was no room in the buffer within the timeout.",
    NO_TIMESTAMP: "The time stamp is not enabled: set its timestamp_enable property.",
    NO_MORE_SPACE: "The buffer and the card's memory cannot hold so many samples before the start.",
    WAIT_TIMED_OUT: "The task was not done within the timeout.",
    NOT_RUNNING: "The task is not running.",
    RUNNING: "This cannot be done while the task runs.",
    PROPERTY_WHILE_RUNNING: "This property cannot be set while the task runs.",
    PROPERTY_NOT_SUPPORTED: "The device does not support this property.",
    PROPERTY_NOT_IN_CONTEXT: "This property does not apply to this task.",
    FUNCTION_NOT_SUPPORTED: "The simulated device does not support this function.",
    NO_WATCHDOG: "The device has no watchdog timer.",
    WATCHDOG_EXPIRED: "The watchdog timer has expired: outputs are in their expiration states.",
    CHASSIS_EXPIRED: "The watchdog timer of the chassis has expired: reset the chassis.",
    WATCHDOG_NOT_FIRST: "A watchdog task cannot be reserved while other tasks of its chassis are.",
    REGISTER_WHILE_RUNNING: "An event cannot be registered while the task runs.",
    EVERY_N_REGISTERED[True]: "The task already has a callback for samples acquired into the "
    "buffer: unregister it first.",
    EVERY_N_REGISTERED[False]: "The task already has a callback for samples transferred from the "
    "buffer: unregister it first.",
    EVERY_N_WRONG_DIRECTION[True]: "An input task has no event for samples transferred from the "
    "buffer.",
    EVERY_N_WRONG_DIRECTION[False]: "An output task has no event for samples acquired into the "
    "buffer.",
    EVERY_N_ON_DEMAND: "A task without a buffer has no Every N Samples event: set its timing.",
    BUFFER_NO_MULTIPLE: "The buffer is no multiple of the interval of the Every N Samples event.",
    PAUSE_WITH_REFERENCE: "A task has a reference trigger or a pause trigger, not both.",
    PAUSE_ON_DEMAND: "The pause trigger does not go with this sample timing.",
    CHANGE_DETECTION_OF_NOTHING: "Change detection needs at least one line, rising or falling.",
    CHANGE_DETECTION_FOREIGN: "Changes are detected on lines of the task alone.",
    ONBOARD_TOO_SMALL: "The card's own memory cannot hold so many samples.",
    ONBOARD_WHILE_RUNNING: "Samples in the card's own memory cannot be written while it runs.",
    NO_TRIGGER_LINE: "No trigger line connects the devices of the route: lay a cable, or take one "
    "chassis.",
    NO_ROUTE: "The hardware has no route between these terminals.",
    EVERY_N_ZERO: "The interval of the Every N Samples event must be at least one sample.",
    DONE_REGISTERED: "The task already has a callback for its end: unregister it first.",
    SIGNAL_REGISTERED: "The task already has a callback for this signal: unregister it first.",
    NO_BUFFER: "These lines cannot be read or written by a clock.",
    WRITE_NOT_STARTED: "With auto start off, one sample can only be written to a running task.",
    WRITE_CHANNELS_DIFFER: "Write cannot be performed, because the number of channels in the data "
    "does not match the number of channels in the task.",
    LINES_DIFFER: "Specified read or write operation failed, because the number of lines in the "
    "data for a channel does not match the number of lines in the channel.",
    REGENERATION_STARVED: "The generation ran out of new samples, and may not repeat old ones.",
    NOTHING_WRITTEN: "The generation cannot start: nothing was written to its buffer.",
    BAD_AO_DATA: "A value to write is outside the output's range.",
    NO_SUCH_SCALE: "No custom scale has this name.",
    NO_SUCH_GLOBAL_CHANNEL: "No global channel has this name.",
    NO_SUCH_TERMINAL: "The device has no such terminal.",
    UNKNOWN_DEVICE_IN_TERMINAL: "The terminal names a device that is not present.",
    START_TRIGGER_NOT_SUPPORTED: "The task supports no such start trigger.",
    NO_CALIBRATION: "The device cannot be calibrated.",
    NO_TEDS_FILE: "The virtual TEDS file cannot be read.",
    BAD_TEDS: "The data are no TEDS: they are too short, or not bits.",
    NO_TEDS_SENSOR: "No TEDS sensor is connected to this physical channel.",
    NO_ROSETTE_MEASUREMENT: "Name at least one measurement of the rosette.",
    ROSETTE_NEEDS_THREE: "A rectangular or delta rosette needs three physical channels.",
    ROSETTE_NEEDS_TWO: "A tee rosette needs two physical channels.",
    TEDS_OTHER_SENSOR: "The TEDS belongs to a sensor that measures something else.",
    TEDS_TEMPLATE_NOT_SUPPORTED: "The TEDS has a template that is not supported.",
    EMPTY_POWER_UP_CHANNEL: "Every power-up state needs one physical channel.",
    POWER_UP_OF_INPUT: "Lines that are only inputs have no power-up state.",
    POWER_UP_MIXED: "The lines of the port have different power-up states: ask for the lines.",
    POWER_UP_TRISTATE: "Lines that are only outputs cannot be in tristate.",
    NO_POWER_UP_STATES: "The device has no programmable power-up states for this channel.",
    ARRAY_TOO_SMALL: "The array has no room for all channels.",
    NOT_IN_STORAGE: "No saved task has this name.",
    TRIGGER_ON_DEMAND: "A task without a clock has no triggers: configure its timing first.",
    NO_AI_MAX: "The upper limit of the channel is not set: set ai_max.",
    NO_AI_MIN: "The lower limit of the channel is not set: set ai_min.",
    OTHER_SCALE_TYPE: "A scale of this type does not have this property.",
    NO_DEVICE_CONTEXT: "This property belongs to the task and not to one of its devices.",
    NO_SUCH_DESTINATION: "The signal cannot be routed to this terminal: the device has no such "
    "terminal.",
    NO_LOG_FILE: "The file to log to cannot be opened or made.",
    LOG_NEEDS_CLOCK: "Only clocked acquisitions can be logged.",
    ONLY_LOGGED: "In this logging mode samples go to the file only.",
    REFERENCE_WHEN_CONTINUOUS: "A reference trigger needs a finite acquisition.",
    TOO_MANY_PRETRIGGER: "So many samples before the reference trigger leave too few after it.",
    NO_REFERENCE_TRIGGER: "A read relative to a reference trigger needs such a trigger.",
    REFERENCE_NOT_YET: "Samples can be read relative to the reference trigger only when the "
    "acquisition is done.",
    ABORTED: "The task was stopped, or its device was removed, while a call waited for it.",
    DEFECT: "Internal error of the simulated driver.",
    STOPPED_BEFORE_DONE: "The task was stopped before it was done.",
}


class SetupError(Exception):
    """The set-up of the simulation is wrong: one line with the remedy."""


class PortError(Exception):
    """The server's port is taken."""


class DaqmxError(Exception):
    """An error or a warning of a DAQmx function.

    Attributes
    ----------
    code : int
        NI-DAQmx's status code.
    detail : str
        The extended information: text, then who and what, then the code.
    samples : int
        Samples per channel that were read or written all the same.
    """

    def __init__(self, code: int, note: str = "", /, **facts: object) -> None:
        self.code = code
        self.samples = 0
        lines = [f"{TEXTS[code]} {note}".strip()]
        lines += [f"{name.replace('_', ' ')}: {value}" for name, value in facts.items()]
        self.facts = lines
        super().__init__(code)

    @property
    def detail(self) -> str:
        return "\n".join([*self.facts, f"\nStatus Code: {self.code}"])


def text(code: int) -> str:
    """A code's text, as DAQmxGetErrorString gives it."""
    return TEXTS.get(code, "Error code could not be found. The simulated driver never gives it.")
