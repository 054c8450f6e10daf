import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { shopper, type Shopper } from '../../simulators/services/shopper.ts'
import { ensureBuilt, ROOT } from './built.ts'
import { bundledCommand } from './bundled-command.ts'
import { temporaryFolder } from './databases.ts'

/** `untag start` as a new user runs it, in its own process. */
export interface Demonstration {
  stationUrl: string
  gateUrl: string
  /** One-time link that pairs a browser. */
  pairingUrl: string
  gateId: string
  storeId: string
  /** A shopper of the store, over the public API. */
  api: Shopper
  /** Presses keys on its terminal. */
  press(keys: string): void
  /** Its output so far. */
  printed(): string
  /** Presses q; returns the exit code. */
  quit(): Promise<number | null>
}

/** Maximum start time on a busy machine, ms. */
const START_MS = 45_000

export async function startDemonstration(): Promise<Demonstration> {
  ensureBuilt()
  const data = temporaryFolder('demonstration')
  const options = ['--port', '0', '--mqtt-port', '0', '--edge-port', '0', '--data', data]
  const child = spawn(process.execPath, [await bundledCommand(), 'start', ...options], {
    cwd: ROOT,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let printed = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (printed += text))
  await untilPrinted(child, () => printed, /^ready .*\n/m).catch((error: unknown) => {
    child.kill()
    throw error
  })

  const find = (pattern: RegExp): string => {
    const found = pattern.exec(printed)?.[1]
    if (found === undefined) throw new Error(`the demonstration did not print ${pattern}:\n${printed}`)
    return found
  }
  const ready = JSON.parse(find(/^ready (.*)$/m)) as Record<string, unknown>
  const gateUrl = find(/Exit gate +(\S+)/)
  const api = shopper({ baseUrl: String(ready['baseUrl']), key: String(ready['key']), fetch })
  const { stores } = (await api.call('fetchStores', {})) as { stores: { storeId: string; securityTagMode: string }[] }
  return {
    stationUrl: find(/Staff station +(\S+)/),
    gateUrl,
    pairingUrl: String(ready['pairingUrl']),
    gateId: new URL(gateUrl).searchParams.get('device') ?? '',
    storeId: stores.find((store) => store.securityTagMode === 'rfid')?.storeId ?? '',
    api,
    press: (keys) => void child.stdin.write(keys),
    printed: () => printed,
    async quit() {
      const exited = child.exitCode === null ? once(child, 'exit') : Promise.resolve()
      child.stdin.write('q')
      await exited
      rmSync(data, { recursive: true, force: true })
      return child.exitCode
    },
  }
}

async function untilPrinted(child: ChildProcess, printed: () => string, text: RegExp): Promise<void> {
  const limit = AbortSignal.timeout(START_MS)
  while (!text.test(printed())) {
    if (child.exitCode !== null) throw new Error(`the demonstration ended:\n${printed()}`)
    const news = child.stdout ? once(child.stdout, 'data', { signal: limit }) : Promise.reject(new Error('no output'))
    await Promise.race([news, once(child, 'exit', { signal: limit })])
  }
}
