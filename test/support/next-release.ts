import { processesOf } from '../verification/kills/processes.ts'
import { UNTAG_VERSION } from '../../policy/version.ts'
import { ROOT } from './built.ts'
import { bundle } from './bundled-command.ts'

/**
 * A build of this checkout as the release of the next step: with its version, one more migration of the cloud and of
 * the ledger, and another format of the items file.
 */

const [major, minor] = UNTAG_VERSION.split('.').map(Number)
/** Version of the next release. */
export const NEXT_VERSION = `${major}.${Number(minor) + 1}.0`
/** Name of the migration that only the next release has. */
export const NEXT_MIGRATION = '9999-next'

const CLOUD_MIGRATION = {
  name: NEXT_MIGRATION,
  statements: [
    `CREATE TABLE next_table (id text PRIMARY KEY, ms bigint NOT NULL)`,
    `ALTER TABLE store ADD COLUMN next_column text`,
    `UPDATE store SET next_column = store_id`,
  ],
}
const LEDGER_MIGRATION =
  'CREATE TABLE next_table (id TEXT PRIMARY KEY) STRICT; ALTER TABLE claim ADD COLUMN next_column TEXT'

/** Changes of built files: file, text, and its replacement. */
const CHANGES: readonly (readonly [file: string, text: RegExp, replacement: string])[] = [
  ['policy/version.js', /(?<=UNTAG_VERSION = ')[^']*/, NEXT_VERSION],
  [
    'cloud/platform/persistence/migrate.js',
    /(?<=const MIGRATIONS = \[[^\]]*)\]/,
    `, ${JSON.stringify(CLOUD_MIGRATION)}]`,
  ],
  [
    'edge-agent/ledger/file/ledger-file.js',
    /(?<=const MIGRATIONS = \[[^\]]*)\]/,
    `, ${JSON.stringify(LEDGER_MIGRATION)}]`,
  ],
  ['edge-agent/items/item-file.js', /(?<=const SCHEMA_VERSION = )\d+/, '99'],
]

let command: Promise<string> | undefined

async function build(): Promise<string> {
  const open = new Set(CHANGES)
  const built = await bundle([
    {
      name: 'next-release',
      transform: {
        filter: { id: /\/dist\// },
        handler(code, id) {
          const change = CHANGES.find(([file]) => id.endsWith(`/dist/${file}`))
          if (!change) return undefined
          const [, text, replacement] = change
          if (text.test(code)) open.delete(change)
          return code.replace(text, replacement)
        },
      },
    },
  ])
  const missed = [...open].map(([file]) => file)
  if (missed.length > 0) throw new Error(`next-release.ts does not change ${missed.join(', ')}: adapt its text`)
  return built
}

/** Processes of the next release. */
export const nextProcesses = processesOf(ROOT, () => (command ??= build()))
