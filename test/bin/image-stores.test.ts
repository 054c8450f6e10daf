import { createHash, createHmac } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { imageBucket, imageFolder } from '../../bin/commands/cloud.ts'
import type { ImageStore } from '../../cloud/platform/foundation/ports.ts'
import { temporaryFolder } from '../support/databases.ts'

const NAME = `${'A'.repeat(43)}.png`
const SETTINGS = { region: 'eu-central-1', accessKeyId: 'AKID', secretAccessKey: 'very secret' }

/** Starts a storage that verifies signatures by the published steps of AWS Signature Version 4. */
async function startStorage(): Promise<{
  url: string
  server: Server
  stored: Map<string, { bytes: Buffer; type: string }>
  fail: { status: number }
}> {
  const stored = new Map<string, { bytes: Buffer; type: string }>()
  const fail = { status: 0 }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      if (fail.status > 0) return void response.writeHead(fail.status).end()
      if (!isSigned(request.method ?? '', request.url ?? '', request.headers as Record<string, string>, body))
        return void response.writeHead(403).end()
      if (request.method === 'PUT')
        stored.set(request.url ?? '', { bytes: body, type: request.headers['content-type'] ?? '' })
      const found = stored.get(request.url ?? '')
      if (!found) return void response.writeHead(404).end()
      response.writeHead(200).end(request.method === 'GET' ? found.bytes : undefined)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/pictures`, server, stored, fail }
}

function isSigned(method: string, path: string, headers: Record<string, string>, body: Buffer): boolean {
  const found =
    /Credential=AKID\/(\d{8})\/eu-central-1\/s3\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})/.exec(
      headers['authorization'] ?? '',
    )
  const [, day = '', names = '', signature = ''] = found ?? []
  const hash = headers['x-amz-content-sha256'] ?? ''
  if (hash !== 'UNSIGNED-PAYLOAD' && hash !== createHash('sha256').update(body).digest('hex')) return false
  const canonical = [
    method,
    path,
    '',
    ...names.split(';').map((name) => `${name}:${headers[name]?.trim()}`),
    '',
    names,
    hash,
  ].join('\n')
  const toSign = [
    'AWS4-HMAC-SHA256',
    headers['x-amz-date'],
    `${day}/eu-central-1/s3/aws4_request`,
    createHash('sha256').update(canonical).digest('hex'),
  ].join('\n')
  const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
  const key = ['eu-central-1', 's3', 'aws4_request'].reduce(hmac, hmac(`AWS4${SETTINGS.secretAccessKey}`, day))
  return hmac(key, toSign).toString('hex') === signature
}

async function keeps(store: ImageStore): Promise<void> {
  const bytes = new Uint8Array([1, 2, 3, 250])
  expect(await store.get(NAME)).toBeUndefined()
  await store.put(NAME, bytes, 'image/png')
  await store.put(NAME, bytes, 'image/png')
  expect([...((await store.get(NAME)) ?? [])]).toEqual([...bytes])
  for (const name of ['../../etc/passwd', '', 'x.png', `${'A'.repeat(43)}.exe`]) {
    await expect(store.put(name, bytes, 'image/png')).rejects.toThrow('not the name of an image')
    await expect(store.get(name)).rejects.toThrow('not the name of an image')
  }
}

describe('stores of images', () => {
  const servers: Server[] = []
  afterEach(() => servers.splice(0).forEach((server) => server.close()))

  it('store images in a folder', () => keeps(imageFolder(temporaryFolder('images'))))

  it('store images in a bucket, with requests signed for S3', async () => {
    const { url, server, stored } = await startStorage()
    servers.push(server)
    await keeps(imageBucket({ url, ...SETTINGS }))
    expect([...stored.keys()]).toEqual([`/pictures/${NAME}`])
    expect(stored.get(`/pictures/${NAME}`)?.type).toBe('image/png')
  })

  it('report the status of the storage without the secret', async () => {
    const { url, server, fail } = await startStorage()
    servers.push(server)
    const wrong = imageBucket({ url, ...SETTINGS, secretAccessKey: 'wrong' })
    await expect(wrong.put(NAME, new Uint8Array([1]), 'image/png')).rejects.toThrow(
      /^the image storage answered 403 to PUT$/,
    )
    fail.status = 400
    await expect(imageBucket({ url, ...SETTINGS }).get(NAME)).rejects.toThrow(/^the image storage answered 400 to GET$/)
  })
})
