import { existsSync, mkdirSync, realpathSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { keyFilesIn, loadKeyFiles } from '../../cloud/platform/authority/key-files.ts'
import { flushFolder, replaceFile } from '../../host/replace-file.ts'
import type { Values } from '../../host/options.ts'
import { printNote } from '../../host/output.ts'
import { accessError, isDenied } from '../../host/private-files.ts'
import { realPlatform } from '../../host/platform.ts'
import { secretFiles } from '../../host/secret-files.ts'
import {
  nextSteps,
  serviceFiles,
  type ServiceFile,
  type ServiceName,
  type UnitPlaces,
} from '../../host/service/units.ts'
import { tlsFilesOf } from '../../host/tls/server-certificate.ts'
import type { SERVICE_CLOUD_OPTIONS, SERVICE_EDGE_OPTIONS, SERVICE_REMOVE_OPTIONS } from '../../host/settings/edge.ts'

/** Folders that the sandbox of a service hides. */
const HIDDEN = /^\/(?:home|root|run\/user|tmp|var\/tmp)\//

/** Writes the unit of the cloud, and creates its keys. */
export async function runServiceInstallCloud(settings: Values<typeof SERVICE_CLOUD_OPTIONS>): Promise<void> {
  const keysDir = resolve(settings.keysDir)
  const files = serviceFiles('cloud', { ...placesOf(keysDir), tls: tlsOf(settings) })
  if (settings.print) return print(files)
  writeAll(settings.out, files)
  mkdirSync(dirname(keysDir), { recursive: true, mode: 0o755 })
  await loadKeyFiles(keyFilesIn(keysDir), secretFiles, realPlatform().random)
  report('cloud', settings, files, [keysDir])
}

/** Writes the unit of the agent. */
export function runServiceInstallEdge(settings: Values<typeof SERVICE_EDGE_OPTIONS>): void {
  const files = serviceFiles('edge', { ...placesOf(''), tls: tlsOf(settings) })
  if (settings.print) return print(files)
  writeAll(settings.out, files)
  report('edge', settings, files)
}

/** Deletes the unit of a service. Data, keys and the user stay. */
export function runServiceRemove(name: ServiceName, { out, json }: Values<typeof SERVICE_REMOVE_OPTIONS>): void {
  const files = serviceFiles(name, placesOf('')).map(({ path }) => join(out, path))
  const removed = files.filter((file) => existsSync(file))
  for (const file of removed) {
    try {
      rmSync(file)
      flushFolder(dirname(file))
    } catch (error) {
      if (!isDenied(error)) throw accessError(file, error)
      throw new Error(`${file} cannot be deleted (permission denied): run this command as root`, { cause: error })
    }
  }
  if (json) process.stdout.write(`${JSON.stringify({ removed })}\n`)
  else
    process.stdout.write(removed.map((file) => `removed ${file}\n`).join('') || `there is no unit of untag ${name}\n`)
}

/** Absolute paths of certificate and key. They need not exist yet. */
function tlsOf(settings: Values<typeof SERVICE_EDGE_OPTIONS>): UnitPlaces['tls'] {
  const files = tlsFilesOf(settings)
  return files && { tlsCert: resolve(files.tlsCert), tlsKey: resolve(files.tlsKey) }
}

function placesOf(keysDir: string): UnitPlaces {
  const program = realpathSync(process.argv[1] ?? '')
  return { node: process.execPath, program, keysDir }
}

function print(files: readonly ServiceFile[]): void {
  process.stdout.write(files.map(({ text }) => text).join('\n'))
}

function writeAll(out: string, files: readonly ServiceFile[]): void {
  // Unlike data and keys, units are public.
  process.umask(0o022)
  for (const { path, text } of files) {
    const file = join(out, path)
    try {
      mkdirSync(dirname(file), { recursive: true, mode: 0o755 })
      replaceFile(file, text, 0o644)
    } catch (error) {
      if (!isDenied(error)) throw accessError(file, error)
      throw new Error(
        `${file} cannot be written (permission denied): run this command as root, or choose a folder with --out`,
        { cause: error },
      )
    }
  }
}

function report(
  name: ServiceName,
  { out, json }: { out: string; json: boolean },
  files: readonly ServiceFile[],
  keys: readonly string[] = [],
): void {
  const written = files.map(({ path }) => join(out, path))
  const next = nextSteps(name)
  if (json) process.stdout.write(`${JSON.stringify({ written, keys, next })}\n`)
  else
    process.stdout.write(
      [
        ...written.map((file) => `wrote ${file}`),
        ...keys.map((folder) => `keys are in ${folder}: back up this folder apart from the data`),
        ...next.map((step) => `then run ${step}`),
        ...(name === 'edge' ? ['CLOUD and CODE: the page Devices of the console makes the code'] : []),
        `settings: one variable a line in /etc/untag/${name}.env (docs/guides/services.md); log: journalctl -u untag-${name}`,
        '',
      ].join('\n'),
    )
  if (!existsSync('/run/systemd/system')) printNote('systemd does not run on this machine, and the unit needs it')
  const { node, program } = placesOf('')
  for (const path of [node, program].filter((each) => HIDDEN.test(each)))
    printNote(`The service cannot read ${path}: install untag and Node.js below /opt or /usr`)
}
