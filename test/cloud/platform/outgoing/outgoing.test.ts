import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { outgoingHttp, type ResolveName } from '../../../../host/outgoing-http.ts'
import {
  checkAddress,
  checkTarget,
  type TargetRules,
  type OutgoingRequest,
} from '../../../../cloud/platform/outgoing/outgoing-http.ts'
import { answerWith, startRawReceiver, startReceiver, type Receiver } from '../../../support/receiver.ts'

const LIVE: TargetRules = { plainHttp: false, privateTargets: false }
const TEST: TargetRules = { plainHttp: true, privateTargets: false }
const OPEN: TargetRules = { plainHttp: true, privateTargets: true }

const REFUSED_HOSTS = `
  127.0.0.1 127.1 127.255.255.254 0x7f.1 0x7f000001 2130706433 0177.0.0.1 017700000001 ①②⑦.⓪.⓪.① 127.0.0.1. 0 0.0.0.0
  10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.1.1 100.64.0.1 169.254.169.254 169.254.1.1
  192.0.0.1 192.0.2.1 198.18.0.1 198.51.100.7 203.0.113.9 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255 192.88.99.1
  [::] [::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:8.8.8.8] [::127.0.0.1] [::ffff:10.0.0.1] [0:0:0:0:0:ffff:a9fe:a9fe]
  [64:ff9b::7f00:1] [64:ff9b::808:808] [64:ff9b:1::1] [2002:7f00:1::] [2002:a00:1::1] [2001::1] [2001:db8::1] [3fff::1]
  [fc00::1] [fd12:3456::1] [fe80::1] [fec0::1] [ff02::1] [100::1] [5f00::1]
  localhost LOCALHOST localhost. a.localhost foo.localhost. localhost.localdomain printer.local metadata.google.internal
  nas.lan router.home pc.corp x.home.arpa intranet db 1.0.0.127.in-addr.arpa shop.onion
`
  .trim()
  .split(/\s+/)

describe('addresses that the cloud may send to', () => {
  it.each(REFUSED_HOSTS)('exclude %s', (host) => {
    expect(checkTarget(`https://${host}/hook`, LIVE)).toHaveProperty('refusal')
    expect(checkTarget(`http://${host}:8080/hook`, TEST)).toHaveProperty('refusal')
  })

  it.each([
    'https://shop.example/hook',
    'https://shop.example:8443/',
    'https://shop.example:9443/x',
    'https://sap.example:50000/b1s/v2',
    'https://8.8.8.8/x?y=1',
    'https://[2a00:1450:4001::1]/',
    'https://SHOP.example./a',
    'https://xn--mller-kva.example/',
  ])('include %s', (url) => {
    expect(checkTarget(url, LIVE)).toHaveProperty('url')
  })

  it.each(['http://shop.example/hook', 'http://shop.example:8080/', 'http://shop.example:3000/'])(
    'include %s in test mode only',
    (url) => {
      expect(checkTarget(url, TEST)).toHaveProperty('url')
      expect(checkTarget(url, LIVE)).toHaveProperty('refusal')
      expect(checkTarget(url, { plainHttp: false, privateTargets: true })).toHaveProperty('refusal')
    },
  )

  it.each([
    'ftp://shop.example/',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'gopher://shop.example/',
    'data:text/plain,x',
    'shop.example/hook',
    '//shop.example',
    '',
    'https://',
    'https://user@shop.example/',
    'https://user:pass@shop.example/',
    'https://:pass@shop.example/',
    'https://shop.example:22/',
    'https://shop.example:25/',
    'https://shop.example:6000/',
    'https://shop.example:0/',
    'https://256.256.256.256/',
    'https://[::1%25eth0]/',
    `https://shop.example/${'x'.repeat(2_100)}`,
  ])('never include %s', (url) => {
    expect(checkTarget(url, LIVE)).toHaveProperty('refusal')
    if (!/:(?:22|25|6000|0)\//.test(url)) expect(checkTarget(url, OPEN)).toHaveProperty('refusal')
  })

  it('exclude the ports that fetch blocks, and include all others', async () => {
    const isBad = async (port: number) =>
      ((await fetch(`http://127.0.0.1:${port}/`).catch((error: Error) => error.cause)) as Error).message === 'bad port'
    const isRefused = (port: number) => 'refusal' in checkTarget(`https://shop.example:${port}/`, LIVE)
    for (const port of [19, 22, 25, 110, 465, 587, 993, 2049, 5060, 6000, 6667, 10080])
      expect([port, await isBad(port), isRefused(port)]).toEqual([port, true, true])
    for (const port of [80, 443, 444, 1024, 3000, 8080, 8443, 9443, 50000, 65535])
      expect([port, isRefused(port)]).toEqual([port, false])
  })

  it('include private addresses only by configuration', () => {
    for (const host of ['127.0.0.1:4242', '[::1]:4242', 'localhost:4242', '10.1.2.3'])
      expect(checkTarget(`http://${host}/`, OPEN)).toHaveProperty('url')
  })

  it('follow the same rules after name resolution', () => {
    for (const address of [
      '127.0.0.1',
      '10.0.0.1',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:8.8.8.8',
      'fe80::1%eth0',
      '64:ff9b::1',
      '2002::1',
      'no address',
      '',
    ])
      expect([address, checkAddress(address, LIVE)]).toEqual([
        address,
        expect.objectContaining({ refusal: expect.any(String) }),
      ])
    for (const address of [
      '8.8.8.8',
      '1.1.1.1',
      '2606:4700:4700::1111',
      '223.255.255.255',
      '172.32.0.1',
      '100.128.0.1',
    ])
      expect([address, checkAddress(address, LIVE)]).toEqual([address, undefined])
  })
})

describe('requests over real sockets', () => {
  let receiver: Receiver
  beforeAll(async () => void (receiver = await startReceiver()))
  afterAll(() => receiver.close())

  const request = (url: string, more: Partial<OutgoingRequest> = {}): OutgoingRequest => ({
    url,
    method: 'POST',
    headers: {},
    body: '{}',
    answerLimit: 65_536,
    rules: OPEN,
    ...more,
  })
  const send = (url: string, more: Partial<OutgoingRequest> = {}, resolve?: ResolveName, ms = 5_000) =>
    outgoingHttp(resolve).send(request(url, more), AbortSignal.timeout(ms))
  const faultOf = (sent: Promise<unknown>) =>
    sent.then(
      () => 'sent',
      (error: { code: string }) => error.code,
    )

  it('send body, headers and status', async () => {
    receiver.answer = answerWith(202, 'taken', { 'x-own': '1' })
    const answer = await send(receiver.url, { headers: { 'x-a': 'ü'.normalize('NFD').slice(0, 1) }, body: '{"ü":1}' })
    expect(answer).toMatchObject({ status: 202, isCut: false, headers: { 'x-own': '1' } })
    expect(Buffer.from(answer.body).toString()).toBe('taken')
    expect(receiver.requests.at(-1)).toMatchObject({ path: '/hook', body: '{"ü":1}', headers: { connection: 'close' } })
  })

  it('never connect to an address that DNS changed after the check', async () => {
    const before = receiver.requests.length
    const port = new URL(receiver.url).port
    const answers = [['8.8.8.8'], ['127.0.0.1']]
    const rebinding: ResolveName = async () => (answers.shift() ?? []).map((address) => ({ address, family: 4 }))
    await rebinding('x', TEST, AbortSignal.timeout(1)) // the result of an earlier check
    expect(await faultOf(send(`http://rebind.example:8080/`, { rules: TEST }, rebinding))).toBe('address_refused')
    const mixed: ResolveName = async () => [
      { address: '8.8.8.8', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ]
    expect(await faultOf(send(`http://mixed.example:8080/`, { rules: TEST }, mixed))).toBe('address_refused')
    const resolved: string[] = []
    const pinned: ResolveName = async (name) => [{ address: '127.0.0.1', family: resolved.push(name) + 3 }]
    await send(`http://pinned.example:${port}/pinned`, {}, pinned)
    expect(resolved).toEqual(['pinned.example'])
    expect(receiver.requests.length).toBe(before + 1)
    expect(receiver.requests.at(-1)).toMatchObject({ path: '/pinned', headers: { host: `pinned.example:${port}` } })
  })

  it('reject addresses that the rules forbid', async () => {
    const before = receiver.requests.length
    expect(await faultOf(send(receiver.url, { rules: TEST }))).toBe('address_refused')
    expect(await faultOf(send(receiver.url.replace('127.0.0.1', 'localhost'), { rules: TEST }))).toBe('address_refused')
    expect(receiver.requests.length).toBe(before)
  })

  it('follow no redirects', async () => {
    receiver.answer = answerWith(302, '', { location: '/elsewhere' })
    expect((await send(receiver.url)).status).toBe(302)
    expect(receiver.requests.some((g) => g.path === '/elsewhere')).toBe(false)
  })

  it('read an endless response only up to the limit', async () => {
    let sent = 0
    receiver.answer = (response) => {
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, 'x'))) sent += 65_536
        if (!response.destroyed) response.once('drain', more)
      }
      more()
    }
    const answer = await send(receiver.url, { answerLimit: 1_000 })
    expect([answer.status, answer.body.length, answer.isCut]).toEqual([200, 1_000, true])
    expect(sent).toBeLessThan(20_000_000)
  })

  it('end an answer of many tiny chunks, and keep the bytes of one with fewer', async () => {
    const chunks = (count: number) => {
      receiver.answer = (response) => {
        response.on('error', () => undefined)
        response.socket?.write(
          `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(count)}0\r\n\r\n`,
        )
      }
      return send(receiver.url, { answerLimit: 1_000_000 })
    }
    expect(await chunks(50_000)).toMatchObject({ isCut: false, body: { length: 50_000 } })
    expect(await chunks(100_000)).toMatchObject({ isCut: true, body: { length: 65_537 } })
  })

  it('take a few interim answers, and end an endless row of them', async () => {
    const interim = (count: number) => {
      receiver.answer = (response) => {
        response.on('error', () => undefined)
        response.socket?.write('HTTP/1.1 102 X\r\n\r\n'.repeat(count))
        if (count < 20) response.end('taken')
      }
      return send(receiver.url)
    }
    expect(await interim(3)).toMatchObject({ status: 200 })
    expect(await faultOf(interim(100))).toBe('not_http')
  })

  it('report the kind of fault', async () => {
    const nobody = await startReceiver()
    await nobody.close()
    expect(await faultOf(send(nobody.url))).toBe('connection_refused')
    const reset = await startRawReceiver((socket) => socket.once('data', () => socket.resetAndDestroy()))
    expect(await faultOf(send(reset.url))).toBe('connection_reset')
    const noise = await startRawReceiver((socket) => socket.end('SSH-2.0-OpenSSH_9.2\r\n'))
    expect(await faultOf(send(noise.url))).toBe('not_http')
    const large = await startRawReceiver((socket) =>
      socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`)),
    )
    expect(await faultOf(send(large.url))).toBe('not_http')
    expect(await faultOf(send(noise.url.replace('http:', 'https:')))).toBe('tls_failed')
    expect(
      await faultOf(
        send('https://nowhere.example/', { rules: LIVE }, async () => {
          throw Object.assign(new Error('x'), { code: 'ENOTFOUND' })
        }),
      ),
    ).toBe('name_not_found')
    const hanging = await startRawReceiver(() => undefined)
    expect(await faultOf(send(hanging.url, {}, undefined, 50))).toBe('timeout')
    for (const each of [reset, noise, large, hanging]) await each.close()
  })

  it('count the status if only the body does not end', async () => {
    receiver.answer = (response) => void response.writeHead(200).write('a')
    expect(await send(receiver.url, {}, undefined, 100)).toMatchObject({ status: 200, isCut: true })
  })
})
