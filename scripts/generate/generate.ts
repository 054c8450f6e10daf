import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UndeclaredChange } from './contract-page.ts'
import { outdatedFiles } from './generated-files.ts'

/** `npm run generate`: writes the generated files that differ from the code. If one cannot be made, writes none. */

/** The project folder. This file runs as dist/scripts/generate/generate.js. */
const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

function readFile(file: string): string {
  const path = join(ROOT, file)
  return existsSync(path) ? readFileSync(path, 'utf8') : ''
}

try {
  const outdated = await outdatedFiles(readFile)
  for (const { file, text } of outdated) {
    writeFileSync(join(ROOT, file), text)
    process.stdout.write(`${file} written\n`)
  }
  if (outdated.length === 0) process.stdout.write('all generated files are up to date\n')
} catch (error) {
  if (!(error instanceof UndeclaredChange)) throw error
  process.stderr.write(`${error.message}\nNothing was written.\n`)
  process.exitCode = 1
}
