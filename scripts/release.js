// Checks that this checkout can be released, and builds the npm package twice. Publishes nothing.
//
// Each build starts from a new clone of the commit. npm ci runs no scripts, because the build needs no native parts.
// The tarballs must be equal, byte by byte.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fixtureHash, releaseFaults, schemaHash, unpinnedImages } from './release-checks.js'

const root = fileURLToPath(new URL('..', import.meta.url))
/** `--trial`: reports the faults of the checkout, and builds the last commit anyway. */
const isTrial = process.argv.includes('--trial')
const began = Date.now()
const STEPS = 6
let step = 0

/** Prints that the next step begins. */
function show(what) {
  step++
  process.stderr.write(`[${step}/${STEPS}] ${what} (${Math.round((Date.now() - began) / 1_000)} s)\n`)
}

/** The output of a short command. */
function output(command, args) {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed: ${error?.message ?? stderr.trim()}`)
  return stdout
}

/** Runs a long command. Prints its output only if it fails. */
async function run(cwd, command, ...args) {
  let text = ''
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text = (text + part).slice(-20_000)))
  const code = await new Promise((resolve, reject) => child.once('error', reject).once('close', resolve))
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${text}`)
}

/** Builds the package from a new clone of HEAD. Returns the path of the tarball. */
async function build(parent, name) {
  const folder = join(parent, name)
  await run(root, 'git', 'clone', '--quiet', '--no-hardlinks', root, folder)
  await run(folder, 'git', 'checkout', '--quiet', '--detach', output('git', ['rev-parse', 'HEAD']).trim())
  await run(folder, 'npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline')
  // `npm pack` builds first: script prepack.
  await run(folder, 'npm', 'pack', '--silent', '--pack-destination', parent)
  const tarball = join(parent, `${name}.tgz`)
  copyFileSync(join(parent, `untag-${version}.tgz`), tarball)
  return tarball
}

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
const parent = mkdtempSync(join(tmpdir(), 'untag-release-'))
try {
  show(`Checking the tree, the changelog and the data of release ${version}`)
  const faults = releaseFaults({
    version,
    changelog: readFileSync(join(root, 'CHANGELOG.md'), 'utf8'),
    status: output('git', ['status', '--porcelain']),
    fixture: fixtureHash(version),
    schema: schemaHash(),
    unpinned: unpinnedImages(),
    today: new Date().toISOString().slice(0, 10),
  })
  if (faults.length > 0) process.stderr.write(`${faults.map((fault) => `  ${fault}`).join('\n')}\n`)
  if (faults.length > 0 && !isTrial) throw new Error('this checkout cannot be released')

  show('Checking the licences, and that this version equals the one in the code')
  await run(root, 'npx', 'vitest', 'run', 'test/docs/licences.test.ts', 'test/policy/version.test.ts')

  show('Writing the SBOM')
  const out = join(root, 'var/release')
  mkdirSync(out, { recursive: true })
  const sbom = output(process.execPath, [join(root, 'scripts/sbom.js')])

  show('Building the package in a new clone')
  const first = await build(parent, 'first')
  show('Building it again in another clone')
  const second = await build(parent, 'second')

  show('Comparing both')
  const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex')
  const hash = sha256(first)
  if (hash !== sha256(second)) {
    copyFileSync(first, join(out, 'first.tgz'))
    copyFileSync(second, join(out, 'second.tgz'))
    throw new Error('the two builds differ: compare first.tgz and second.tgz in var/release')
  }
  const tarball = join(out, `untag-${version}.tgz`)
  copyFileSync(first, tarball)
  writeFileSync(join(out, `untag-${version}.cdx.json`), sbom)
  process.stdout.write(`${hash}  var/release/untag-${version}.tgz\n`)
  process.stderr.write(
    faults.length > 0
      ? 'This was a trial: the faults above prevent the release.\n'
      : `Nothing is published. Next:
  git tag -s v${version} -m "untag ${version}" && git push origin v${version}
  npm publish var/release/untag-${version}.tgz
  npm run package:deb
Publish the SHA-256 above and var/release/untag-${version}.cdx.json (SBOM) with the release.\n`,
  )
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
} finally {
  rmSync(parent, { recursive: true, force: true })
}
