import type { Fault } from '../faults/fault-kinds.ts'
import { change, type Mutant } from './mutant.ts'

const FILE = 'edge-agent/devices/emergency.js'
/** Few worlds have a fire panel by themselves. */
const EMERGENCY_FAULTS: readonly Fault[] = ['emergency', 'agent-crash', 'agent-disk', 'partition', 'restart']

/** Bugs of the one way to an actuator that asks no ledger. */
export const EMERGENCY_MUTANTS: readonly Mutant[] = [
  {
    name: 'emergency-moves-deactivators',
    what: 'an emergency opens every device whose setting says so, whatever the policy calls it',
    changes: [change(FILE, 'return type === undefined || !NEVER_OPENED.has(type);', 'return true;')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'emergency-waits-for-record',
    what: 'the way out opens only after the event is durable',
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
    what: 'an emergency opens nothing while the cloud is offline',
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
    name: 'emergency-shuts-at-start',
    what: 'an agent that starts during an emergency shuts the way out until it has read its input',
    changes: [change(FILE, 'if (active.length === 0 && isUndecided)', 'if (false)')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'emergency-never-ends',
    what: 'what an emergency has opened stays open when its input clears',
    changes: [change(FILE, 'if (before === key)', 'if (before === key || !open)')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'cut-wire-unnoticed',
    what: 'a normally closed input that cannot be read counts as no emergency',
    changes: [change(FILE, "(isLost && wiring === 'normally_closed')", '(isLost && wiring === undefined)')],
    faults: EMERGENCY_FAULTS,
  },
  {
    name: 'cut-wire-at-once',
    what: 'a lost connection counts as an emergency before its 10 s are over',
    changes: [change(FILE, 'platform.timers.after(UNREADABLE_AFTER_MS,', 'platform.timers.after(500,')],
    faults: EMERGENCY_FAULTS,
  },
]
