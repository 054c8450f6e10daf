import { describe, expect, it } from 'vitest'
import { vendorClient } from '../../cloud/sales/integrations/vendor-client.ts'
import { openIdProvider } from '../../cloud/platform/users/openid-provider.ts'
import type { Log } from '../../cloud/platform/foundation/log.ts'
import type { CloudConfig } from '../../cloud/platform/foundation/config.ts'
import type { OutgoingHttp } from '../../cloud/platform/outgoing/outgoing-http.ts'
import { jsonOf } from '../../device-drivers/kit/http/rest-client.ts'
import { readJson } from '../../device-drivers/kit/protocol/json-lines.ts'
import { httpClient } from '../../edge-agent/link/wire/http-client.ts'
import { DOCUMENT_KINDS } from '../../policy/documents/kinds.ts'
import { signBytes } from '../../policy/documents/keys.ts'
import { openDocument, decodeUnverifiedClaims } from '../../policy/documents/signed-document.ts'
import { readUntrustedJson } from '../../policy/untrusted-json.ts'
import { ringOf, testKey } from '../support/keys.ts'
import { virtualPlatform } from '../verification/simulation/virtual/virtual-platform.ts'

const nested = (levels: number) => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`
const list = (count: number) => `{"a":[${Array.from({ length: count }, () => 0).join(',')}]}`
const fields = (count: number) => JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [n, 0])))
const WITHIN = [nested(31), `[${list(24_000)},${list(24_000)}]`, fields(1_000)]
const BEYOND = [nested(32), nested(3_000_000), list(200_001), fields(1_001)]

const platform = virtualPlatform()
const answering = (text: string): OutgoingHttp => ({
  send: () => Promise.resolve({ status: 200, headers: {}, body: Buffer.from(text), isCut: false }),
})

/** Each reader of JSON that another system wrote; undefined if it rejects the text. */
const READERS: Record<string, (text: string) => unknown> = {
  'an answer of a till': (text) => {
    const parts = {
      outgoing: answering(text),
      platform,
      rules: { plainHttp: false, privateTargets: false },
      budget: { bytes: 1e9, signal: new AbortController().signal },
      beat: () => Promise.resolve(),
    }
    return vendorClient('https://till.example', parts)
      .send({ method: 'GET', url: 'https://till.example/articles' })
      .then(
        ({ json }) => json,
        (fault: { code: string }) => (fault.code === 'answer_not_understood' ? undefined : fault),
      )
  },
  'settings of an identity provider': async (text) => {
    const reasons: string[] = []
    const log = { info: () => {}, warn: () => {}, error: ({ reason }: { reason: string }) => reasons.push(reason) }
    const openId = { issuer: 'https://id.example', clientId: 'a', clientSecret: 'b', name: 'ID', domains: [] }
    const config = { openId, baseUrl: 'https://untag.example/api/v1' } as unknown as CloudConfig
    const parts = { outgoing: answering(text), platform, log: log as unknown as Log }
    await openIdProvider(config, parts)?.check()
    return reasons.join().includes('not_http') ? undefined : JSON.parse(text)
  },
  'an answer to an agent': async (text) => {
    const answer = { status: 200, text: () => Promise.resolve(text) }
    const client = httpClient('https://cloud.example', () => Promise.resolve(answer), platform)
    const read = await client.get('time', 1_000)
    return read.kind === 'answered' ? read.body : undefined
  },
  'an answer of a reader': (text) => jsonOf({ kind: 'answered', status: 200, body: text } as never),
  'a message of a reader': (text) => readJson(text).items[0]?.value,
}

describe('JSON that another system wrote', () => {
  it.each(Object.entries(READERS))('%s has limits', async (_name, read) => {
    for (const text of WITHIN) expect(await read(text)).toEqual(JSON.parse(text))
    for (const text of BEYOND) expect(await read(text)).toBeUndefined()
  })

  it('is unreadable as a whole if a reader sends too many values side by side', () => {
    expect(readJson('[]'.repeat(250_000)).items).toEqual([])
    expect(readJson('[]'.repeat(1_000)).items).toHaveLength(1_000)
  })

  it('is undefined if it is no JSON', () => {
    for (const text of ['', '{', '[1,]', 'x']) expect(readUntrustedJson(text)).toBeUndefined()
    expect([readUntrustedJson('null'), readUntrustedJson(' 1 ')]).toEqual([null, 1])
  })

  it('in a signed document has limits', () => {
    const key = testKey('agent')
    const kind = DOCUMENT_KINDS.events
    const b64 = (text: string) => Buffer.from(text).toString('base64url')
    const header = b64(JSON.stringify({ alg: 'EdDSA', kid: key.record.kid, typ: kind.typ }))
    const open = (text: string) => {
      const input = `${header}.${b64(text)}`
      const signature = signBytes(Buffer.from(input), key.signer).toString('base64url')
      const opened = openDocument(`${input}.${signature}`, kind, { keys: ringOf(key), audience: 'cloud' })
      return opened.ok ? 'ok' : opened.fault
    }
    const claims = (rows: string) => `{"aud":"cloud","iat":1,"exp":2,"rows":${rows}}`
    expect(open(claims(nested(30)))).toBe('ok')
    for (const rows of [nested(31), nested(60_000), fields(1_001)]) expect(open(claims(rows))).toBe('malformed')
    expect(decodeUnverifiedClaims(`a.${b64(nested(60_000))}.c`)).toEqual({})
  })
})

it('has 50,000 values; only answers of tills may have more', () => {
  expect(readUntrustedJson(list(50_001))).toBeUndefined()
  expect(readUntrustedJson(list(50_001), { maxValues: 200_000 })).toBeDefined()
})

it('may limit the values of each list, and the characters of each text', () => {
  const limits = { maxValues: 200_000, maxItems: 30_000, maxText: 100 }
  expect(readUntrustedJson(`{"articles":${list(30_000)}}`, limits)).toBeDefined()
  expect(readUntrustedJson(`{"articles":${list(30_001)}}`, limits)).toBeUndefined()
  expect(readUntrustedJson(JSON.stringify({ name: 'x'.repeat(100) }), limits)).toBeDefined()
  expect(readUntrustedJson(JSON.stringify([{ name: 'x'.repeat(101) }]), limits)).toBeUndefined()
})
