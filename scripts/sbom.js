// Prints a CycloneDX SBOM of the production packages. `npm sbom` creates it from package-lock.json.
//
// `npm sbom --omit dev` leaves out packages that a development dependency needs too, such as serialport and pg-protocol
// (npm 11.19). The lock file is therefore copied without its development packages first.
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const readJson = (file) => JSON.parse(readFileSync(join(root, file), 'utf8'))

const { devDependencies: _dev, scripts: _scripts, ...own } = readJson('package.json')
const lock = readJson('package-lock.json')
const { devDependencies: _lockedDev, ...lockedRoot } = lock.packages['']
// Licences that stand in the LICENSE file of a package, but not in its package.json.
const stated = readJson('scripts/stated-licences.json')
const withLicence = ([path, entry]) => [path, { license: stated[path.replace(/^.*node_modules\//, '')], ...entry }]
const packages = Object.fromEntries(
  Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && !dev)
    .map(withLicence),
)

const parent = mkdtempSync(join(tmpdir(), 'untag-sbom-'))
try {
  // `npm sbom` uses the name of the folder as the name of the product.
  const folder = join(parent, own.name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'package.json'), JSON.stringify(own))
  writeFileSync(
    join(folder, 'package-lock.json'),
    JSON.stringify({ ...lock, packages: { '': lockedRoot, ...packages } }),
  )
  const { status, stdout, stderr, error } = spawnSync(
    'npm',
    ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx', '--sbom-type', 'application'],
    { cwd: folder, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, shell: process.platform === 'win32' },
  )
  if (error || status !== 0)
    throw new Error(`npm sbom failed, which needs npm 9.5 or newer: ${error?.message ?? stderr.trim()}`)
  process.stdout.write(stdout)
} finally {
  rmSync(parent, { recursive: true, force: true })
}
