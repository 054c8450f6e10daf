import { X509Certificate } from 'node:crypto'
import { createServer } from 'node:tls'
import { connect as connectTcp, createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import { OWN_CERTIFICATE, OWN_KEY } from './own-certificate.ts'

const fingerprint = new X509Certificate(OWN_CERTIFICATE).fingerprint256
let server: Server
let https = ''

beforeAll(async () => {
  server = createServer(
    { key: OWN_KEY, cert: OWN_CERTIFICATE },
    (socket) => void socket.on('error', () => {}).pipe(socket),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  https = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())

const signal = () => new AbortController().signal

test('accepts the certificate with the configured fingerprint, with or without colons, and carries bytes', async () => {
  for (const named of [fingerprint, fingerprint.replaceAll(':', '').toLowerCase()]) {
    const link = await openLink({ https, fingerprint: named }, signal())
    await link.write(Uint8Array.of(1, 2, 3), signal())
    for await (const chunk of link.bytes) {
      expect([...chunk]).toEqual([1, 2, 3])
      break
    }
    await link.close()
  }
})

test('rejects any other certificate', async () => {
  const other = fingerprint.replace(/^../, (first) => (first === '00' ? '11' : '00'))
  await expect(openLink({ https, fingerprint: other }, signal())).rejects.toMatchObject({
    code: 'forbidden',
    message: expect.stringContaining('another certificate'),
  })
})

test('rejects an untrusted certificate without a fingerprint, and names the setting to add', async () => {
  await expect(openLink({ https }, signal())).rejects.toMatchObject({
    code: 'forbidden',
    message: expect.stringContaining(`"fingerprint": "${fingerprint.replaceAll(':', '')}"`),
  })
})

test('reports a missing peer, and ends at an abort', async () => {
  await expect(openLink({ https: '127.0.0.1:1' }, signal())).rejects.toMatchObject({ code: 'refused' })
  const over = new AbortController()
  over.abort(new Error('stopped'))
  await expect(openLink({ https }, over.signal)).rejects.toThrow('stopped')
})

test.each([
  ['given up: what was written and not taken never arrives', false],
  ['closed in order: it arrives', true],
])('%s', async (_, inOrder) => {
  // A connection between the link and the server that the test can block.
  let cable: Socket | null = null
  let carried = 0
  const pair = createTcpServer((socket) => {
    cable = socket
    const far = connectTcp((server.address() as AddressInfo).port, '127.0.0.1')
    for (const end of [socket, far]) end.on('error', () => {})
    socket.on('data', (chunk) => {
      carried += chunk.length
      far.write(chunk)
    })
    socket.on('end', () => far.end())
    far.on('data', (chunk) => socket.write(chunk))
    far.on('end', () => socket.end())
  })
  await new Promise<void>((resolve) => pair.listen(0, '127.0.0.1', resolve))
  const link = await openLink({ https: `127.0.0.1:${(pair.address() as AddressInfo).port}`, fingerprint }, signal())
  const near = cable as unknown as Socket
  const cut = new Promise((resolve) => near.once('close', resolve))
  near.pause()
  let taken = 0
  for (let written = true; written;) {
    written = await link.write(new Uint8Array(262_144), AbortSignal.timeout(200)).then(
      () => true,
      () => false,
    )
    if (written) taken += 262_144
  }
  const closed = link.close(inOrder ? signal() : undefined)
  near.resume()
  await closed
  await cut
  if (inOrder) expect(carried).toBeGreaterThan(taken)
  else expect(carried).toBeLessThan(taken)
  pair.close()
})
