import { join } from 'node:path'
import { change, type Mutant } from '../simulation/mutants/mutant.ts'
import type { ProcessEnvironment } from './processes.ts'

/** Mutants that only real processes can find, because the simulation has no PostgreSQL. */
export const KILL_MUTANTS: readonly Mutant[] = [
  {
    name: 'postgres-commit-not-flushed',
    what: 'PostgreSQL acknowledges a commit before it is flushed.',
    changes: [
      change(
        'cloud/platform/persistence/postgres-pool.js',
        'const result = await this.#client.query(statement);',
        "if (text === 'commit') await this.#client.query('SET LOCAL synchronous_commit = off');\nconst result = await this.#client.query(statement);",
      ),
    ],
  },
]

/** Environment that loads the mutant `bug` into a process. `root`: the project folder. */
export function withMutant(root: string, bug: string): ProcessEnvironment {
  return {
    env: { NODE_OPTIONS: `--import=${join(root, 'dist/test/verification/load-mutant.js')}`, UNTAG_SIM_BUG: bug },
  }
}
