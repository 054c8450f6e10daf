import { X509Certificate } from 'node:crypto'
import { createServer } from 'node:tls'
import type { AddressInfo, Server } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openLink } from '../../device-drivers/transports/link-settings.ts'
import { OWN_CERTIFICATE, OWN_KEY } from './own-certificate.ts'

const fingerprint = new X509Certificate(OWN_CERTIFICATE).fingerprint256
let server: Server
let https = ''

beforeAll(async () => {
  server = createServer({ key: OWN_KEY, cert: OWN_CERTIFICATE }, (socket) => void socket.on('error', () => {}).pipe(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  https = `127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(() => void server.close())

const signal = () => new AbortController().signal

test('the certificate that the settings name is accepted, with colons or without, and carries bytes', async () => {
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

test('another one is refused, whatever it is', async () => {
  const other = fingerprint.replace(/^../, (first) => (first === '00' ? '11' : '00'))
  await expect(openLink({ https, fingerprint: other }, signal())).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining('another certificate') })
})

test('without a fingerprint one that nobody vouches for is refused, and the message has the setting to add', async () => {
  await expect(openLink({ https }, signal())).rejects.toMatchObject({ code: 'forbidden', message: expect.stringContaining(`"fingerprint": "${fingerprint.replaceAll(':', '')}"`) })
})

test('nobody there, and given up', async () => {
  await expect(openLink({ https: '127.0.0.1:1' }, signal())).rejects.toMatchObject({ code: 'refused' })
  const over = new AbortController()
  over.abort(new Error('stopped'))
  await expect(openLink({ https }, over.signal)).rejects.toThrow('stopped')
})
