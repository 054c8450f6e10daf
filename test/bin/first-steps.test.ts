import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { answerText } from '../../bin/commands/api.ts'
import { readOptions } from '../../host/options.ts'
import { API_OPTIONS } from '../../host/settings/tools.ts'
import { runCommand } from '../support/commands.ts'
import { temporaryFolder } from '../support/databases.ts'

describe('a new user of the command line', () => {
  it('learns before the build how to build and run untag', () => {
    const folder = temporaryFolder('unbuilt')
    mkdirSync(join(folder, 'bin'))
    copyFileSync('bin/untag.js', join(folder, 'bin/untag.mjs'))
    const untag = (...args: string[]) =>
      spawnSync(process.execPath, [join(folder, 'bin/untag.mjs'), ...args], { encoding: 'utf8' })
    for (const args of [['start', '--help'], ['--help'], ['-h'], ['help', 'start']]) {
      const { status, stdout } = untag(...args)
      expect(status).toBe(0)
      expect(stdout).toMatch(/npm start -- --port 8081[^]*npm run build/)
    }
    expect(untag('start')).toMatchObject({ status: 1, stderr: expect.stringContaining('not built yet') })
  })

  it.each(['cloud', 'service', 'edge enrol'])('gets for "help %s" what --help shows', async (words) => {
    const asked = await runCommand(['help', ...words.split(' ')])
    expect(asked).toMatchObject({ code: 0, stderr: '' })
    expect(asked).toEqual(await runCommand([...words.split(' '), '--help']))
  })

  it.each([
    [['help', 'nonsense'], /there is no command "nonsense"/],
    [['service', 'install'], /^untag service install needs one of these words: cloud, edge\n/],
    [['service', 'install', 'clod'], /needs one of these words: cloud, edge, not "clod"/],
    [
      ['users', 'invite', '--account', 'a', '--email', 'ada'],
      /^--email: "ada" is not an e-mail address: write one such/,
    ],
    [['users', 'invite', '--account', 'a'], /^--email ADDRESS is needed/],
  ] as const)('learns what is wrong with %j', async (args, fault) => {
    expect(await runCommand([...args])).toMatchObject({ code: 2, stderr: expect.stringMatching(fault) })
  })

  it('sees a list of the API as a table in a terminal, as wide as this, and gets JSON in a pipe', () => {
    const stores = [
      { storeId: 'st_1', name: 'Hafenkante\u001b[2J', address: { city: 'Hamburg' }, mode: 'live' },
      { storeId: 'st_22', name: 'x'.repeat(50), address: { city: 'Kiel' }, mode: 'demo', note: null },
    ]
    const answer = { success: true, stores, total: 2 }
    expect(answerText(answer, true, 80).split('\n')).toEqual([
      `storeId  ${'name'.padEnd(40)}  mode`,
      `st_1     ${'Hafenkante\\u001b[2J'.padEnd(40)}  live`,
      `st_22    ${'x'.repeat(39)}…  demo`,
      '',
      'total: 2',
      'Add --json for everything, also address.',
      '',
    ])
    expect(answerText(answer, true, 20)).toMatch(/^storeId  mode\n/)
    // What tells the rows apart comes first, and an object shows its name.
    const alarms = [1, 2].map((n) => ({ eventId: `e${n}`, storeId: 'st_1', epc: `A${n}`, product: { name: `P${n}` } }))
    expect(answerText({ success: true, alarms }, true, 22)).toMatch(/^product {2}epc {2}eventId\nP1 {7}A1 {3}e1\n/)
    expect(JSON.parse(answerText(answer, false))).toEqual(answer)
    // An empty list is JSON in a pipe only.
    const none = { success: true, stores: [] }
    expect(answerText(none, true)).toBe('nothing found\n\ntotal: 0\n')
    expect(JSON.parse(answerText(none, false))).toEqual(none)
    for (const other of [
      { success: true, name: 'x' },
      { a: [{ b: 1 }], c: [{ d: 1 }] },
      { names: ['x'] },
      { stores: [] },
    ])
      expect(JSON.parse(answerText(other, true))).toEqual(other)
  })

  it('sees the goods and the time of alarms, and the money of closings, in 80 columns', () => {
    const alarms = [1, 2].map((n) => ({
      eventId: `evt_06H2HNVBENT9Z8QAX2EF6M56G${n}`,
      reason: 'gate_alarm',
      occurredAt: `2026-11-29T19:45:3${n}.111Z`,
      detail: 'siren: not_paid',
      deviceId: 'dev_06H04YYPG1S7B6R67DHQN6BQ3G',
      gate: 'Ausgang',
      product: { name: 'Herren-Hemd Slim Fit, Größe L' },
      epc: `E2801170000002000000000${n}`,
    }))
    const lines = answerText({ success: true, alarms, total: 2 }, true, 80).split('\n')
    expect(lines[0]?.split(/ +/)).toEqual(['product', 'epc', 'occurredAt'])
    // The time where the terminal is, with its zone.
    expect(lines[1]).toMatch(/^Herren-Hemd Slim Fit,… {2}E28011700000020000000001 {2}2026-11-\d\d \d\d:\d\d:31 \S+$/)
    const [wide] = answerText({ success: true, alarms, total: 2 }, true, 140).split('\n')
    expect(wide?.split(/ +/)).toEqual(['product', 'epc', 'occurredAt', 'reason', 'gate', 'eventId'])
    const purchases = [
      { transactionId: 'p1', total: 89.9 },
      { transactionId: 'p2', total: 5 },
    ]
    const table = answerText({ success: true, purchases, total: 2 }, true, 80)
    expect(table.match(/\S+$/gm)).toEqual(['total', '89.90', '5.00', '2'])
    const closings = [1, 2].map((number) => ({
      storeId: 'st_06H04YYPG1S7B6R65MVAQTBYMG',
      number,
      from: '2026-11-28',
      date: `2026-11-2${number}`,
      closedAt: '2026-11-29T01:00:00.000Z',
      currency: 'EUR',
      receiptCount: 10,
      salesCent: 16_550 + number,
      refundCent: 2_589,
      totalCent: 13_961,
    }))
    const [head] = answerText({ success: true, closings }, true, 80).split('\n')
    expect(head?.split(/ +/).slice(0, 5)).toEqual(['date', 'receiptCount', 'salesCent', 'refundCent', 'totalCent'])
  })

  it('needs no path in the address of the API, and sees a title above the commands of a group', async () => {
    const baseUrlOf = (address: string) => readOptions(API_OPTIONS, ['--base-url', address], {}).baseUrl
    expect(baseUrlOf('http://127.0.0.1:8080')).toBe('http://127.0.0.1:8080/api/v1')
    expect(baseUrlOf('https://shop.example/')).toBe('https://shop.example/api/v1')
    expect(baseUrlOf('https://shop.example/untag/api/v1')).toBe('https://shop.example/untag/api/v1')
    expect((await runCommand(['service', 'install', '--help'])).stdout).toMatch(
      /^Commands of untag service:\n\n  untag service/,
    )
  })

  it('sees texts of the API in a terminal without control characters, and gets them unchanged in a pipe', () => {
    const csv = 'name;price\r\nRing\u001b[2J;1\t2\r\n'
    expect(answerText(csv, true)).toBe('name;price\nRing\\u001b[2J;1\t2\n')
    expect(answerText(csv, false)).toBe(csv)
    expect(answerText('no end', true)).toBe('no end\n')
    expect(answerText({ name: '\u009b' }, false)).toBe('{\n  "name": "\\u009b"\n}\n')
  })
})
