import type { Fault } from '../faults/fault-kinds.ts'
import { change, type Mutant } from './mutant.ts'

const FILE = 'edge-agent/devices/emergency.js'
/** The faults for these mutants. They are set here, because few seeds draw a fire panel. */
const EMERGENCY_FAULTS: readonly Fault[] = ['emergency', 'agent-crash', 'agent-disk', 'partition', 'restart']

/** Mutants of the emergency input, which opens exits without the ledger. */
export const EMERGENCY_MUTANTS: readonly Mutant[] = [
  {
    name: 'emergency-moves-deactivators',
    what: 'An emergency opens every configured device, also deactivators.',
    changes: [change(FILE, 'return type === undefined || !NEVER_OPENED.has(type);', 'return true;')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'emergency-waits-for-record',
    what: 'The exit opens only after the emergency event is durable.',
    changes: [
      change(
        'edge-agent/devices/devices.js',
        'command: (deviceId, command) => void this.#supervisor?.execute(deviceId, command, new AbortController().signal)',
        'command: (deviceId, command) => void parts.ledger.commits.durably(() => parts.ledger.metadata.set("emergency", deviceId)).then(() => this.#supervisor?.execute(deviceId, command, new AbortController().signal), () => undefined)',
      ),
    ],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'emergency-needs-cloud',
    what: 'An emergency opens nothing while the cloud is offline.',
    changes: [
      change(
        FILE,
        'const opened = active.length > 0 ?',
        'const opened = active.length > 0 && this.#parts.isOnline() ?',
      ),
    ],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'emergency-closes-at-start',
    what: 'An agent that starts during an emergency closes the exit until it has read its input.',
    changes: [change(FILE, 'if (active.length === 0 && isUndecided)', 'if (false)')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'emergency-never-ends',
    what: 'The exit stays open after the emergency input clears.',
    changes: [change(FILE, 'if (before === key)', 'if (before === key || !open)')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'cut-wire-unnoticed',
    what: 'An unreadable normally closed input does not count as an emergency.',
    changes: [change(FILE, "(isLost && wiring === 'normally_closed')", '(isLost && wiring === undefined)')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'cut-wire-at-once',
    what: 'A lost connection counts as an emergency before 10 s are over.',
    changes: [change(FILE, 'platform.timers.after(UNREADABLE_AFTER_MS,', 'platform.timers.after(500,')],
    faults: EMERGENCY_FAULTS,
  },
]
