import { configSchema } from '../../edge-agent/config.ts'
import type { ContractDocument } from './breaking-changes.ts'
import { configurationPage } from './configuration-page.ts'
import { agentContractDocument, contractDocument, contractPage, errorCodesPage } from './contract-page.ts'
import { licencesPage, lockedPackages } from './licences-page.ts'
import { paymentsPage } from './payments-page.ts'
import { pythonOperations, type ApiDocument } from './python-operations.ts'
import { tableTypes } from './table-types.ts'

/** Reads a file of the project, by its path. Returns an empty text if the file is missing. */
type ReadFile = (file: string) => string

/** A file in git that is written from the code, as a whole or in parts. */
interface GeneratedFile {
  file: string
  /** Makes the text that the file must have. Throws if an API changed and CHANGELOG.md does not declare it. */
  text(read: ReadFile): string | Promise<string>
}

/** Makes the text of a file from its present text. */
const fromPresent = (file: string, textOf: (present: string) => string): GeneratedFile => ({
  file,
  text: (read) => textOf(read(file)),
})
const contract = (file: string, document: () => ContractDocument): GeneratedFile => ({
  file,
  text: (read) => contractPage(document(), { file, committed: read(file), changelog: read('CHANGELOG.md') }),
})

/** All generated files. `npm run generate` writes them, and test/docs/generated.test.ts compares them. */
export const GENERATED_FILES: readonly GeneratedFile[] = [
  { file: 'cloud/platform/persistence/tables.ts', text: tableTypes },
  contract('docs/reference/openapi.json', contractDocument),
  contract('docs/reference/agent-openapi.json', agentContractDocument),
  fromPresent('docs/reference/configuration.md', configurationPage),
  fromPresent('docs/reference/errors.md', errorCodesPage),
  fromPresent('docs/guides/payments.md', paymentsPage),
  { file: 'docs/reference/edge-config.schema.json', text: () => `${JSON.stringify(configSchema(), null, 2)}\n` },
  { file: 'docs/reference/licences.md', text: (read) => licencesPage(lockedPackages(read)) },
  {
    file: 'clients/python/untag_client/operations.py',
    text: () => pythonOperations(contractDocument() as unknown as ApiDocument),
  },
]

/** The files that differ from the code, with the text that each must have. Throws if one of the texts cannot be made. */
export async function outdatedFiles(read: ReadFile): Promise<{ file: string; text: string }[]> {
  const files = await Promise.all(GENERATED_FILES.map(async ({ file, text }) => ({ file, text: await text(read) })))
  return files.filter(({ file, text }) => read(file) !== text)
}
