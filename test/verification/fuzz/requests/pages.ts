import type { Chance } from '../../simulation/virtual/chance.ts'
import { known, type Scene } from '../scene/scene.ts'
import { API, type HttpRequest } from '../scene/served-cloud.ts'

const NAMES = [
  '%00',
  '%ff',
  '%',
  '%ed%a0%80',
  '..%2f..',
  '__proto__',
  'x'.repeat(3_000),
  '%3Cscript%3Ealert(1)%3C%2Fscript%3E',
  "'",
]
const FORM = { 'content-type': 'application/x-www-form-urlencoded' }

/**
 * Request for a page, a document or a notification that needs no key. Names in its path are known, shortened or
 * hostile.
 */
export function pageRequest(scene: Scene): HttpRequest {
  const { chance } = scene
  const token = name(chance, known(scene, 'receiptToken'))
  const zone = name(chance, known(scene, 'zon'))
  const card = name(chance, known(scene, 'cardCode'))
  const checkout = name(chance, known(scene, 'checkoutUrl')?.split('/').at(-1))
  const ticket = name(chance, known(scene, 'url')?.split('/').at(-1))
  const store = name(chance, scene.party.storeIds[0])
  const get = (path: string): HttpRequest => ({ method: 'GET', path, headers: {} })
  const post = (path: string, body: string, headers: Record<string, string> = FORM): HttpRequest => ({
    method: 'POST',
    path,
    headers,
    body,
  })
  const text = encodeURIComponent(`<script>alert(1)</script> ${scene.text()}`)
  return chance.one([
    get(`/r/${token}`),
    get(`/R/${token}?lang=${name(chance, 'de')}`),
    {
      ...get(`${API}/getReceiptFromToken?token=${token}`),
      headers: { accept: chance.one(['text/html', 'text/plain']) },
    },
    get(`/L/${card}`),
    get(`/l/${card}?lang=${name(chance, 'de')}`),
    get(`/checkout/${checkout}`),
    post(`/checkout/${checkout}`, `result=${chance.one(['paid', 'declined', 'x'])}`),
    get(`/z/${zone}`),
    post(`/z/${zone}`, `message=${text}&ticket=${ticket}`),
    get(`/z/${zone}/${ticket}`),
    post(`/z/${zone}/${ticket}`, `message=${text}`),
    get(`/images/${name(chance, undefined)}.png`),
    get(`${API}/time?nonce=${name(chance, 'abcdefghijklmnop')}`),
    get(`/.well-known/jwks/${name(chance, scene.party.accountId)}.json`),
    get('/healthz'),
    post(
      `${API}/notify/${chance.one(['custom', 'stripe', 'adyen', 'paypal', 'x'])}/${store}`,
      chance.one(['{}', '', '[]', 'null', '{"a":1']),
      {
        'content-type': 'application/json',
      },
    ),
  ])
}

function name(chance: Chance, known: string | undefined): string {
  if (known === undefined || chance.happens(0.2)) return chance.one(NAMES)
  return chance.happens(0.15) ? known.slice(0, -1) : encodeURIComponent(known)
}
