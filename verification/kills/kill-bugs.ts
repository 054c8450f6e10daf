import { join } from 'node:path'
import { change, type Bug } from '../simulation/bugs/bug.ts'
import type { Surroundings } from './processes.ts'

/** Bugs that only real processes show: the simulation has no PostgreSQL. */
export const KILL_BUGS: readonly Bug[] = [
  {
    name: 'postgres-commit-not-flushed',
    what: 'the cloud has PostgreSQL acknowledge a commit before it is flushed',
    changes: [
      change(
        'cloud/persistence/postgres-pool.js',
        'const result = await client.query(statement, [...parameters]);',
        "if (statement === 'commit') await client.query('SET LOCAL synchronous_commit = off');\nconst result = await client.query(statement, [...parameters]);",
      ),
    ],
  },
]

/** Surroundings in which a process of the project at `root` has this bug. */
export function withBug(root: string, bug: string): Surroundings {
  return { env: { NODE_OPTIONS: `--import=${join(root, 'dist/verification/plant-bug.js')}`, UNTAG_SIM_BUG: bug } }
}
