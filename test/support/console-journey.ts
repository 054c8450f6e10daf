import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Page } from 'playwright-core'
import { shopper, type Shopper } from '../../simulators/services/shopper.ts'
import { newMigratedPostgres, temporaryFolder, type DatabaseKind } from './databases.ts'
import { COMMAND } from './processes.ts'

/** `untag start` in its own process, for journeys in the console. */
export interface ConsoleJourney {
  /** Origin of the console, such as `http://localhost:40000`. */
  origin: string
  api: Shopper
  /** The store with the simulated gate, and the other one. */
  storeId: string
  otherStoreId: string
  /** One-time link that pairs a browser with the agent, and the address of the agent. */
  pairingUrl: string
  agentUrl: string
  press(key: string): void
  /** Signs the owner of the demonstration in with the password. */
  signIn(page: Page): Promise<void>
  stop(): Promise<void>
}

/** Starts the demonstration on a new database. */
export async function startConsoleJourney(kind: DatabaseKind, name: string): Promise<ConsoleJourney> {
  const folder = temporaryFolder(name)
  const postgres = kind === 'postgres' ? await newMigratedPostgres() : undefined
  const ports = ['--port', '0', '--mqtt-port', '0', '--edge-port', '0']
  const database = postgres ? ['--database-url', postgres.url] : []
  const start = spawn(process.execPath, [COMMAND, 'start', ...ports, ...database, '--data', join(folder, 'demo')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ready = await new Promise<Record<string, string>>((resolve, reject) => {
    start.once('exit', (code) => reject(new Error(`untag start ended with ${code}`)))
    createInterface({ input: start.stdout }).on('line', (line) => {
      if (line.startsWith('ready ')) resolve(JSON.parse(line.slice('ready '.length)) as Record<string, string>)
    })
  })
  const { baseUrl = '', key = '', consoleUrl = '', consoleUser = '', consolePassword = '' } = ready
  const { pairingUrl = '', agentUrl = '' } = ready
  const api = shopper({ baseUrl, key, fetch })
  const { stores } = (await api.call('fetchStores', {})) as { stores: { storeId: string; securityTagMode: string }[] }
  const storeWith = (isWanted: (mode: string) => boolean) =>
    stores.find(({ securityTagMode }) => isWanted(securityTagMode))?.storeId ?? ''
  return {
    origin: new URL(consoleUrl).origin,
    api,
    storeId: storeWith((mode) => mode === 'rfid'),
    otherStoreId: storeWith((mode) => mode !== 'rfid'),
    pairingUrl,
    agentUrl,
    press: (pressed) => void start.stdin.write(pressed),
    async signIn(page) {
      await page.goto(consoleUrl)
      await page.locator('input[name=email]').fill(consoleUser)
      await page.locator('input[name=password]').fill(consolePassword)
      await page.locator('form:has(input[name=password]) button[type=submit]').click()
      await page.waitForURL((url) => url.pathname === '/console')
      // The page of the form may have the same address.
      await page.locator('input[name=password]').waitFor({ state: 'detached' })
    },
    async stop() {
      const ended = start.exitCode === null ? once(start, 'exit') : undefined
      start.kill('SIGKILL')
      await ended
      await postgres?.remove()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
