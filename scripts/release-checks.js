// The checks of `npm run release` that only read files. Plain JavaScript, because the release runs without a build.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/** Folder with the data that each release wrote. */
export const FIXTURES = 'test/fixtures/releases'
/** Sources of the schema of cloud and ledger. */
const SCHEMA = ['cloud/platform/persistence/migrations', 'edge-agent/ledger/file/ledger-file.ts']

/** SHA-256 of the sources of the schema. */
export function schemaHash(base = root) {
  const hash = createHash('sha256')
  const add = (path) => {
    if (statSync(path).isFile()) return void hash.update(readFileSync(path))
    for (const name of readdirSync(path).sort()) add(join(path, name))
  }
  for (const path of SCHEMA) add(join(base, path))
  return hash.digest('hex')
}

/** Files that name images of other projects. */
const IMAGE_FILES = ['Dockerfile', 'compose.yaml', 'compose.edge.yaml']

/** Images that the files name by tag only. A tag may point to other bytes tomorrow. */
export function unpinnedImages(base = root) {
  return IMAGE_FILES.flatMap((file) => {
    const images = readFileSync(join(base, file), 'utf8').match(/\bdocker\.io\/\S+/g) ?? []
    return images.filter((image) => !/@sha256:[0-9a-f]{64}$/.test(image)).map((image) => `${file}: ${image}`)
  })
}

/**
 * Why the checkout cannot be released as `version`; empty if it can. `status` is the output of `git status
 * --porcelain`, `today` the date as YYYY-MM-DD, `unpinned` the result of `unpinnedImages`.
 */
export function releaseFaults({ version, changelog, status, fixture, schema, today, unpinned }) {
  const faults = unpinned.map((image) => `${image} has no digest: run packaging/pin-images, and commit it`)
  const changed = status.split('\n').filter((line) => line.trim() !== '')
  if (changed.length > 0) faults.push(`git: ${changed.length} changed files: commit or remove them first`)
  const [, date] =
    new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - (\\d{4}-\\d\\d-\\d\\d)$`, 'm').exec(changelog) ?? []
  if (date === undefined)
    faults.push(`CHANGELOG.md: no heading "## [${version}] - ${today}": add it below "## [Unreleased]"`)
  const unreleased = /^## \[Unreleased\]\n([^]*?)(?=^## |(?![^]))/m.exec(changelog)?.[1] ?? ''
  if (date !== undefined && /^- /m.test(unreleased))
    faults.push(`CHANGELOG.md: entries below "## [Unreleased]": move them below "## [${version}]"`)
  const make = 'UNTAG_WRITE_FIXTURE=true npx vitest run test/journeys/upgrade.test.ts'
  if (fixture === undefined) faults.push(`${FIXTURES}/${version} is missing: run ${make}, and commit it`)
  else if (fixture !== schema) faults.push(`${FIXTURES}/${version} has another schema: run ${make}, and commit it`)
  return faults
}

/** The hash of the schema of the committed data of a release; undefined without data. */
export function fixtureHash(version, base = root) {
  const file = join(base, FIXTURES, version, 'schema.sha256')
  return existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined
}
