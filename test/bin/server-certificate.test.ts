// @module-tag extended
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { Hono } from 'hono'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { connectionLimits, type HttpLimits } from '../../host/http-server.ts'
import { listen, type HttpServer } from '../../host/http-server.ts'
import { readOptions, WrongUsage } from '../../host/options.ts'
import { answersHealthz } from '../../host/service/healthz.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { openCloudTls } from '../../host/tls/cloud-tls.ts'
import { certificateFault, fetchTrusting, readCa } from '../../host/tls/private-ca.ts'
import { openServerCertificate, tlsFilesOf } from '../../host/tls/server-certificate.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'
import { newTestCa, type TestCa } from '../support/certificates.ts'
import { temporaryFolder } from '../support/databases.ts'
import { waitFor } from '../support/wait-for.ts'

const DAY_MS = 86_400_000
let folder: string
let ca: TestCa
let files: { tlsCert: string; tlsKey: string }
let platform: ReturnType<typeof virtualPlatform>
let lines: string[]
const ends: (() => unknown)[] = []

beforeEach(() => {
  folder = temporaryFolder('tls')
  ca = newTestCa(folder)
  files = issue('server')
  platform = virtualPlatform({ startMs: Date.now() })
  lines = []
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

function issue(name: string, days?: number, names = 'IP:127.0.0.1') {
  const { cert, key } = ca.issue(name, names, days)
  return { tlsCert: cert, tlsKey: key }
}

function open(hosts: readonly string[] = ['127.0.0.1']) {
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const certificate = openServerCertificate(files, { platform, log: { info: write, warn: write }, hosts })
  ends.push(certificate.stop)
  return certificate
}

/** Lets the certificate read its files `times` times. */
async function check(times = 1): Promise<void> {
  await platform.advance(times * 5_000)
}

async function serve(limits: HttpLimits = connectionLimits().http) {
  const certificate = open()
  const server: HttpServer = await listen({
    host: '127.0.0.1',
    port: 0,
    flag: 'port',
    limits,
    platform,
    certificate,
    warn: (fields, message) => void lines.push(`${message} ${JSON.stringify(fields)}`),
  })
  ends.push(server.close)
  const app = new Hono()
  app.get('/healthz', (c) => c.text('ok'))
  server.serve(app)
  return { server, certificate }
}

/** Opens a TLS connection and completes its handshake. */
async function tlsTo(port: number, options: object = {}): Promise<TLSSocket> {
  const socket = connect({ host: '127.0.0.1', port, ca: readCa('--ca', ca.file), ...options })
  ends.push(() => socket.destroy())
  await new Promise<void>((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject))
  return socket
}

const serial = (socket: TLSSocket) => socket.getPeerCertificate().serialNumber

async function ask(socket: TLSSocket): Promise<string> {
  const answered = new Promise<string>((resolve) => socket.once('data', (data: Buffer) => resolve(data.toString())))
  socket.write('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n')
  return answered
}

describe('the certificate of a TLS server', () => {
  it('is renewed for new connections while open connections continue', async () => {
    const { server } = await serve()
    const former = await tlsTo(server.port)
    expect(await ask(former)).toContain('200 OK')
    issue('server')
    await check()
    expect(serial(await tlsTo(server.port))).not.toBe(serial(former))
    expect(await ask(former)).toContain('200 OK')
    expect(lines.filter((line) => line.startsWith('the TLS certificate was renewed'))).toHaveLength(1)
  })

  it('stays in use if the new files are bad, and the log says so once', async () => {
    const certificate = open()
    const { cert, key } = certificate.options()
    writeFileSync(files.tlsCert, 'not a certificate')
    await check(4)
    expect(certificate.options()).toMatchObject({ cert, key })
    expect(certificate.status().fault).toContain('must hold certificates in PEM form')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain('not usable')
    issue('server')
    await check(2)
    expect(certificate.status()).not.toHaveProperty('fault')
    expect(certificate.options().cert).not.toBe(cert)
  })

  it('causes no log line while a renewal has written only one of the files', async () => {
    const certificate = open()
    const other = issue('other')
    copyFileSync(other.tlsCert, files.tlsCert)
    await check()
    copyFileSync(other.tlsKey, files.tlsKey)
    await check(2)
    expect(lines).toEqual([expect.stringContaining('was renewed')])
    expect(certificate.status()).not.toHaveProperty('fault')
  })

  it('warns once a day from a quarter of its life, at most 14 days, before it expires', async () => {
    const openAfter = (days: number) => {
      platform = virtualPlatform({ startMs: Date.now() + days * DAY_MS })
      lines.length = 0
      open()
    }
    openAfter(14.9)
    expect(lines).toEqual([])
    openAfter(15.1)
    await check(100)
    expect(lines).toEqual([expect.stringContaining('expires soon')])
    openAfter(20.1)
    expect(lines).toEqual([expect.stringContaining('has expired')])
  })

  it.each([
    ['certificates in PEM form', () => writeFileSync(files.tlsCert, 'x')],
    ['private key in PEM form', () => writeFileSync(files.tlsKey, 'x')],
    ['does not belong to', () => copyFileSync(issue('other').tlsKey, files.tlsKey)],
    ['cannot be read', () => void (files = { ...files, tlsKey: join(folder, 'none') })],
    ['longer than', () => writeFileSync(files.tlsCert, 'x'.repeat(300_000))],
  ])('stops the start with an error: %s', (text, spoil) => {
    spoil()
    expect(() => open()).toThrow(text)
    expect(() => open()).toThrow(WrongUsage)
  })

  it('needs both files', () => {
    expect(() => tlsFilesOf({ tlsCert: 'a', tlsKey: undefined })).toThrow('--tls-key')
    expect(() => tlsFilesOf({ tlsCert: undefined, tlsKey: 'b' })).toThrow('--tls-cert')
    expect(tlsFilesOf({ tlsCert: undefined, tlsKey: undefined })).toBeUndefined()
  })

  it('warns of a key that all users can read, and of a host that it does not name', () => {
    chmodSync(files.tlsKey, 0o644)
    open(['127.0.0.1', 'shop.example'])
    expect(lines).toEqual([
      expect.stringContaining('all users of this machine can read the TLS key'),
      expect.stringContaining('"hosts":["shop.example"]'),
    ])
  })
})

describe('the TLS settings of the cloud', () => {
  const openWith = (settings: object) => {
    const write = (_fields: object, message: string) => void lines.push(message)
    const values = { ...readOptions(CLOUD_OPTIONS, [], {}), ...files, ...settings }
    const tls = openCloudTls(values, { platform, log: { info: write, warn: write } })
    if (tls) ends.push(tls.stop)
    return tls
  }

  it.each([
    [{ publicUrl: 'http://shop.example' }, '--public-url must begin with https://'],
    [{ publicMqttUrl: 'mqtt://shop.example' }, '--public-mqtt-url must begin with mqtts://'],
    [{ tlsOn: 'mqtt', mqttUrl: 'mqtts://broker.example' }, '--tls-on mqtt cannot be used with --mqtt-url'],
    [{ tlsOn: 'mqtt', tlsCert: undefined, tlsKey: undefined }, '--tls-on mqtt needs --tls-cert'],
  ])('reject %j', (settings, text) => {
    expect(() => openWith(settings)).toThrow(text)
  })

  it('give the API no TLS if a proxy serves HTTPS', () => {
    const tls = openWith({ tlsOn: 'mqtt', publicUrl: 'https://shop.example' })
    expect(tls).toMatchObject({ api: undefined, broker: expect.anything() })
    expect(openWith({ tlsCert: undefined, tlsKey: undefined })).toBeUndefined()
    expect(lines).toEqual([])
  })
})

describe('an HTTPS server', () => {
  it('rejects TLS 1.1', async () => {
    const { server } = await serve()
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' }
    await expect(tlsTo(server.port, old)).rejects.toThrow(/protocol version|unsupported protocol/)
  })

  it('answers on a connection that sent its first request long ago', async () => {
    const { server } = await serve()
    const socket = await tlsTo(server.port)
    expect(await ask(socket)).toContain('200 OK')
    await platform.advance(16_000)
    expect(await ask(socket)).toContain('200 OK')
  })

  it('cuts connections that do not begin a handshake, and serves others meanwhile', async () => {
    const { server } = await serve({ most: 100, waiting: 10 })
    let cut = 0
    for (let n = 0; n < 40; n++) {
      const socket = connectTcp(server.port, '127.0.0.1').on('close', () => cut++)
      socket.on('error', () => undefined)
      ends.push(() => socket.destroy())
    }
    await waitFor(() => expect(cut).toBe(30))
    expect(await ask(await tlsTo(server.port))).toContain('200 OK')
  })

  it('is alive for the watchdog whatever its certificate is', async () => {
    const { server } = await serve()
    expect(await answersHealthz('127.0.0.1', server.port, true)).toBe(true)
    await server.close()
    expect(await answersHealthz('127.0.0.1', server.port, true)).toBe(false)
  })
})

describe('fetch with a private CA', () => {
  it('trusts servers of this CA, sends bodies and reports other servers with the fix', async () => {
    const { server } = await serve()
    const app = new Hono()
    app.post('/', async (c) => c.text(`${c.req.header('x-own')} ${await c.req.text()}`))
    app.get('/away', (c) => c.redirect('/'))
    server.serve(app)
    const url = `https://127.0.0.1:${server.port}`
    const send = fetchTrusting(readCa('--ca', ca.file))
    const answer = await send(`${url}/`, { method: 'POST', body: 'text', headers: { 'x-own': 'yes' } })
    expect([answer.status, await answer.text()]).toEqual([200, 'yes text'])
    await expect(send(`${url}/away`, { redirect: 'error' })).rejects.toThrow('fetch failed')
    expect((await send(`${url}/away`, { redirect: 'manual' })).status).toBe(302)
    const fault = await fetch(url).catch((error: unknown) => certificateFault(error))
    expect(fault).toContain('--ca FILE')
    const other = await send(url.replace('127.0.0.1', 'localhost')).catch((error: unknown) => certificateFault(error))
    expect(other).toContain('for another host')
    await expect(send(url, { signal: AbortSignal.abort(new Error('over')) })).rejects.toThrow('over')
  })

  it('rejects a file with a key, without a certificate, or with a damaged certificate', () => {
    expect(() => readCa('--ca', files.tlsKey)).toThrow('no private key')
    expect(() => readCa('--ca', join(folder, 'none'))).toThrow('cannot be read')
    const damaged = join(folder, 'damaged.pem')
    writeFileSync(damaged, '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----')
    expect(() => readCa('--ca', damaged)).toThrow('damaged')
  })
})
