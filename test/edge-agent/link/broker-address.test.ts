import { expect, it } from 'vitest'
import { realPlatform } from '../../../host/platform.ts'
import { BrokerAddress } from '../../../edge-agent/link/cloud-connection.ts'
import { brokerVersion } from '../../../policy/documents/broker-document.ts'
import { DOCUMENT_KINDS, type DocumentKind } from '../../../policy/documents/kinds.ts'
import { createSigner, keyRing, newKey } from '../../../policy/documents/keys.ts'
import { signDocument } from '../../../policy/documents/signed-document.ts'

const { x, secret } = newKey(realPlatform().random)
const cloud = createSigner(x, secret)
const keys = keyRing([{ kid: cloud.kid, x, use: 'freshness', state: 'active', iss: 'untag', alg: 'EdDSA' } as never])
const other = newKey(realPlatform().random)

function documentOf(access: object, { aud = 'agt_1', kind = DOCUMENT_KINDS.broker as DocumentKind, by = cloud } = {}) {
  return signDocument(kind, { aud, iat: 1, exp: 61, ...access }, by)
}

function open(mqttUrl?: string) {
  const refused: string[] = []
  let changes = 0
  const address = new BrokerAddress({
    identity: { agentId: 'agt_1', mqttUrl: 'mqtt://enrolled' },
    trust: { keys },
    mqttUrl,
    onRefused: (what) => void refused.push(what),
    onChange: () => void changes++,
  })
  return { address, refused, changes: () => changes }
}

const access = { url: 'mqtts://broker:8883', username: 'agt_1', password: 'pw', ca: 'PEM' }

it('starts with the URL of the enrolment and follows each signed change once', () => {
  const { address, changes } = open()
  expect(address).toMatchObject({ access: { url: 'mqtt://enrolled', username: 'agt_1' }, version: '' })
  address.receive(documentOf(access))
  address.receive(documentOf(access))
  expect([address.access, address.version, changes()]).toEqual([access, brokerVersion(access), 1])
  address.receive(documentOf({ url: 'mqtt://embedded', username: 'agt_1' }))
  expect([address.access, changes()]).toEqual([{ url: 'mqtt://embedded', username: 'agt_1' }, 2])
})

it('keeps a configured URL and takes only the credentials', () => {
  const { address } = open('mqtt://configured')
  address.receive(documentOf(access))
  expect(address).toMatchObject({
    access: { ...access, url: 'mqtt://configured' },
    version: brokerVersion(access),
  })
})

it('rejects a document for another agent, of another kind or with another key', () => {
  const { address, refused, changes } = open()
  address.receive(documentOf(access, { aud: 'agt_2' }))
  address.receive(documentOf(access, { kind: DOCUMENT_KINDS.command }))
  address.receive(documentOf(access, { by: createSigner(other.x, other.secret) }))
  address.receive(documentOf({ url: 5, username: 'agt_1' }))
  address.receive('not a document')
  expect([refused.length, changes(), address.access.url]).toEqual([5, 0, 'mqtt://enrolled'])
})
