// @module-tag extended
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { shopper } from '../../simulators/services/shopper.ts'
import type { Json } from '../support/cloud.ts'
import { temporaryFolder } from '../support/databases.ts'
import { bundledCommand } from '../support/bundled-command.ts'
import { runProcess } from '../support/processes.ts'

describe('untag start', () => {
  let folder: string
  let child: ChildProcess
  let lines: string[]
  const waiting = new Set<() => void>()

  beforeEach(async () => {
    folder = temporaryFolder('start')
    await open()
  })
  afterEach(() => child.kill('SIGKILL'))

  async function open(): Promise<void> {
    lines = []
    const command = await bundledCommand()
    child = spawn(
      process.execPath,
      [command, 'start', '--port', '0', '--mqtt-port', '0', '--edge-port', '0', '--data', join(folder, 'demo')],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      lines.push(line)
      for (const look of waiting) look()
    })
  }
  /** Waits for the first output line after `from` that matches, up to the time limit of the test. */
  function line(wanted: RegExp, from = 0): Promise<string> {
    return new Promise((resolve) => {
      const look = () => {
        const found = lines.slice(from).find((l) => wanted.test(l))
        if (found === undefined) return
        waiting.delete(look)
        resolve(found)
      }
      waiting.add(look)
      look()
    })
  }
  const pinOf = (lines: readonly string[]) => /Sign in as Demo with PIN (\d{6})/.exec(lines.join('\n'))?.[1]

  /** Cookie of the browser that `signIn` paired. */
  let pairedCookie = ''
  /** Pairs like a browser, then signs in the printed operator at the station. */
  async function signIn({ agentUrl }: Record<string, string>, code: string): Promise<Response> {
    const headers = { 'content-type': 'application/json', origin: agentUrl ?? '' }
    const post = (path: string, body: object, cookie = '') =>
      fetch(`${agentUrl}${path}`, { method: 'POST', headers: { ...headers, cookie }, body: JSON.stringify(body) })
    const cookie = (await post('/v1/pair', { code })).headers.get('set-cookie')?.split(';')[0] ?? ''
    pairedCookie = cookie
    const deviceId = /device=([^#\s]+)/.exec(await line(/Staff station/))?.[1]
    const { operators } = (await (
      await fetch(`${agentUrl}/v1/operators`, { headers: { ...headers, cookie } })
    ).json()) as Json
    const { operatorId } = operators.find(({ name }: Json) => name === 'Demo')
    return post('/v1/operator', { deviceId, operatorId, pin: pinOf(lines) }, cookie)
  }

  async function press(key: string, ...wanted: RegExp[]): Promise<void> {
    const from = lines.length
    child.stdin?.write(key)
    for (const each of wanted) await line(each, from)
  }

  it('prints addresses, a key and a working curl line; pressed keys simulate shoppers online and offline', async () => {
    const curl = (await line(/^ {2}curl /)).trim()
    expect(lines.join('\n')).toMatch(/Sandbox key {5}untag_test_sk_/)
    const answer = JSON.parse(execFileSync('sh', ['-c', curl], { encoding: 'utf8' })) as Json
    expect(answer.stores).toHaveLength(2)
    const [, ...variables] = (await line(/^ {2}export UNTAG_KEY=/)).trim().split(' ')
    const command = (await line(/^ {2}untag api /)).trim().split(' ').slice(1)
    const called = await runProcess(command, Object.fromEntries(variables.map((each) => each.split('='))))
    expect(JSON.parse(called.stdout).stores).toEqual(answer.stores)
    for (const name of ['Staff station', 'Exit gate', 'API reference']) {
      const url = /http\S+/.exec(await line(new RegExp(name)))?.[0] ?? ''
      const status = { 'API reference': 200, 'Exit gate': 401, 'Staff station': 200 }[name]
      expect([name, (await fetch(url)).status]).toEqual([name, status])
    }
    // Without a terminal, the last line is the ready line, which programs read.
    const ready = JSON.parse((await line(/^ready /)).slice('ready '.length)) as Record<string, string>
    expect(Object.keys(ready)).toEqual([
      'baseUrl',
      'key',
      'agentUrl',
      'pairingUrl',
      'consoleUrl',
      'consoleUser',
      'consolePassword',
    ])
    expect(lines.at(-1)).toMatch(/^ready /)
    expect(lines.join('\n')).toContain(`Cloud API       ${ready['baseUrl']}`)
    expect(lines.join('\n')).toContain(`Sandbox key     ${ready['key']}`)
    expect(ready['pairingUrl']).toContain(`${ready['agentUrl']}/pair#untag_link_`)
    const api = shopper({ baseUrl: ready['baseUrl'] ?? '', key: ready['key'] ?? '', fetch })
    const storeId = answer.stores.find(({ securityTagMode }: Json) => securityTagMode === 'rfid').storeId
    const { products } = (await api.call('fetchProducts', { storeId, limit: 100, category: 'bekleidung' })) as Json
    const pictures = products.flatMap(({ imageUrl }: Json) => imageUrl ?? [])
    for (const picture of pictures) expect([picture, (await fetch(picture)).status]).toEqual([picture, 200])
    const { tasks } = (await api.call('fetchOpenTasks', { storeId })) as Json
    const waiting = tasks.filter(({ count }: Json) => count > 0).map(({ kind, count }: Json) => [kind, count])
    expect(waiting).toEqual([
      ['alarm', 2],
      ['ageCheck', 1],
      ['help', 1],
      ['order', 1],
      ['exception', 1],
    ])
    expect(((await api.call('fetchPurchaseHistory', { storeId, limit: 1 })) as Json).total).toBeGreaterThan(80)
    expect(((await api.call('fetchClosings', { storeId })) as Json).closings).toHaveLength(7)
    const code = ready['pairingUrl']?.split('#')[1] ?? ''
    expect(await line(/Staff station/)).toContain(code)
    const session = await signIn(ready, code)
    expect(session.status).toBe(200)
    // The alarms that wait in the console also wait at the gate.
    const gate = /http\S+/.exec(await line(/Exit gate/))?.[0] ?? ''
    const page = await (await fetch(gate, { headers: { cookie: pairedCookie } })).text()
    expect(page.match(/data-alarm="/g)).toHaveLength(2)

    await press('s', /✓ Staff station: label deactivated, confirmed \(decided by the cloud/)
    await press('r', /✗ Staff station: refused, already_redeemed \(decided by the cloud/)
    await press('d', /✓ Self-checkout detacher: hard tag detached, confirmed/)
    await press('u', /✗ Exit gate: refused, item_not_paid \(decided at the gate\)/)
    await press('p', /✓ Exit gate: a paid tag leaves/)
    await press('o', /network of the store is cut/)
    await press('s', /✓ Staff station: label deactivated, confirmed \(decided offline/)
    await press('r', /✗ Staff station: refused, already_redeemed \(decided offline/)
    await press('u', /✗ Exit gate: refused, item_not_paid \(decided at the gate\)/)
    await press('o', /network is back/, /the cloud has received all events/)
    const ended = once(child, 'exit')
    await press('q')
    expect(await ended).toEqual([0, null])

    // A second start keeps key, PIN and agent, although the cloud has another port.
    const pin = pinOf(lines)
    await open()
    const again = JSON.parse((await line(/^ready /)).slice('ready '.length)) as Record<string, string>
    expect(again['key']).toBe(ready['key'])
    expect(again['baseUrl']).not.toBe(ready['baseUrl'])
    expect(pinOf(lines)).toBe(pin)
    expect(statSync(join(folder, 'demo/demo.json')).mode & 0o777).toBe(0o600)
    await press('s', /✓ Staff station: label deactivated, confirmed \(decided by the cloud/)
  })
})
