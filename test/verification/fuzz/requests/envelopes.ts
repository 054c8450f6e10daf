import type { Operation } from '../../../../cloud/platform/operations/operation.ts'
import type { Chance } from '../../simulation/virtual/chance.ts'
import { API, type Json, type HttpRequest } from '../scene/served-cloud.ts'

/** Builds HTTP requests from bodies. */

const BOUNDARY = 'untag-fuzz-boundary'
const JSON_TYPE = 'application/json'
/** Operations that wait for a thread, because they hash a PIN or a password, or read an image. */
const SLOW = new Set([
  'registerOperator',
  'updateOperator',
  'uploadImageToProduct',
  'signIn',
  'acceptInvitation',
  'changePassword',
])

/** The HTTP request that the documentation of the operation describes. */
export function envelope(
  operation: Operation,
  body: Json,
  headers: Readonly<Record<string, string>>,
  isOlderForm: boolean,
): HttpRequest {
  const path = `${API}/${operation.name}`
  if (isOlderForm) return { method: 'GET', path: `${path}?${queryOf(body)}`, headers }
  const isSlow = SLOW.has(operation.name)
  if (operation.multipart?.alsoJson === false) {
    const type = `multipart/form-data; boundary=${BOUNDARY}`
    const form = formOf(body, operation.multipart.fileField)
    return { method: 'POST', path, headers: { 'content-type': type, ...headers }, body: form, isSlow }
  }
  return {
    method: 'POST',
    path,
    headers: { 'content-type': JSON_TYPE, ...headers },
    body: JSON.stringify(body),
    isSlow,
  }
}

function queryOf(body: Json): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(body))
    if (value !== undefined) query.append(name, typeof value === 'string' ? value : JSON.stringify(value))
  return query.toString()
}

function formOf(body: Json, fileField: string): string {
  const parts = Object.entries(body).map(([name, value]) => {
    const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    const file = name === fileField ? '; filename="file.csv"' : ''
    const clean = JSON.stringify(name.replace(/["\r\n]/g, '_'))
    return `--${BOUNDARY}\r\ncontent-disposition: form-data; name=${clean}${file}\r\n\r\n${text}\r\n`
  })
  return `${parts.join('')}--${BOUNDARY}--\r\n`
}

const BODIES: readonly string[] = [
  '',
  '{',
  '[]',
  'null',
  '42',
  '"text"',
  '{"a":}',
  '{}{}',
  '\u0000',
  '<xml/>',
  'storeId=1',
  '{"storeId":"a\\u0000b"}',
  '{"storeId":"\\ud800"}',
  '{"storeId":1,"storeId":2}',
  '{"__proto__":{"storeId":"x"}}',
  '{"constructor":{"prototype":{"isAdmin":true}}}',
  `{"a":${'['.repeat(40)}${']'.repeat(40)}}`,
  `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
  `{"a":[${'1,'.repeat(100_001)}1]}`,
  '{"a":1e999}',
  '\ufeff{}',
]

const TYPES: readonly (string | undefined)[] = [
  undefined,
  '',
  'text/plain',
  'application/json; charset=utf-16',
  'application/x-www-form-urlencoded',
  'multipart/form-data',
  'multipart/form-data; boundary=',
  `multipart/form-data; boundary=${BOUNDARY}`,
  'application/problem+json',
  JSON_TYPE,
  JSON_TYPE,
]

/** An invalid HTTP request to the operation's address. */
export function wildEnvelope(chance: Chance, good: HttpRequest, operation: Operation): HttpRequest {
  const { 'content-type': _type, ...headers } = good.headers
  const type = chance.one(TYPES)
  const typed = type === undefined ? headers : { ...headers, 'content-type': type }
  const how = chance.between(0, 5)
  if (how === 0) return { ...good, body: chance.one(BODIES), method: 'POST' }
  if (how === 1) return { ...good, method: 'POST', headers: typed, body: good.body ?? chance.one(BODIES) }
  if (how === 2) return { ...good, method: chance.one(['PUT', 'DELETE', 'PATCH', 'OPTIONS']) }
  if (how === 3) return { method: 'GET', path: `${API}/${operation.name}?limit=-1&cursor=%00&storeId=`, headers }
  if (how === 4) {
    const bytes = Uint8Array.from(chance.bytes(chance.between(1, 60)))
    return { ...good, method: 'POST', body: bytes }
  }
  const accept = chance.one(['application/problem+json', 'text/event-stream', 'text/html', '*/*;q=0'])
  return { ...good, headers: { ...good.headers, accept } }
}

/** An Authorization header that belongs to no key. Some of these headers are close to a real one. */
export function wrongAuthorization(chance: Chance, genuine: string): string {
  const last = genuine.endsWith('a') ? 'b' : 'a'
  return chance.one([
    '',
    'Bearer',
    'Bearer ',
    `Basic ${genuine.slice(7)}`,
    `${genuine} x`,
    genuine.slice(0, -1),
    genuine.slice(0, -1) + last,
    `${genuine}${last}`,
    genuine.replace('_sk_', '_pk_').replace('_pk_', '_sk_') + last,
    genuine.replace('test', 'live') + last,
    `Bearer ${genuine}`,
    'Bearer untag_test_sk_',
    `Bearer ${'x'.repeat(10_000)}`,
    'Bearer null',
    "Bearer ' OR 1=1 --",
  ])
}
