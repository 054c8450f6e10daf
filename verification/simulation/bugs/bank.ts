import type { Bug } from './bug.ts'
import { EMERGENCY_BUGS } from './of-an-emergency.ts'
import { LIAR_BUGS } from './of-a-liar.ts'
import { AGENT_BUGS } from './of-an-agent.ts'
import { MANY_AGENTS_BUGS } from './of-many-agents.ts'
import { CLOUD_BUGS } from './of-the-cloud.ts'
import { MONEY_BUGS } from './of-money.ts'

/** Every bug of the bank. */
export const BUGS: readonly Bug[] = [
  ...AGENT_BUGS,
  ...CLOUD_BUGS,
  ...MANY_AGENTS_BUGS,
  ...MONEY_BUGS,
  ...LIAR_BUGS,
  ...EMERGENCY_BUGS,
]
