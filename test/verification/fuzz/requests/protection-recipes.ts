import { keyId, newKey, createSigner } from '../../../../policy/documents/keys.ts'
import { DOCUMENT_KINDS } from '../../../../policy/documents/kinds.ts'
import { signDocument } from '../../../../policy/documents/signed-document.ts'
import { publicKeyOf, type AgentIdentity } from '../scene/agent-login.ts'
import {
  alarm,
  knownOrNew,
  enrolAgent,
  enrolment,
  firstBatch,
  grant,
  item,
  loginOf,
  MAKERS,
  newEan,
  newEpc,
  paidPurchase,
} from './makers.ts'
import { storeOf, type Scene } from '../scene/scene.ts'
import type { Json } from '../scene/served-cloud.ts'

/** Makes a request that should succeed. */
export type Recipe = (scene: Scene) => Json | Promise<Json>

/** A recall of a new product, so that other requests still succeed. */
async function recall(scene: Scene): Promise<Json> {
  const [storeId, ean] = [scene.party.storeIds[0], newEan(scene)]
  await scene.call('insertProduct', { storeId, ean, name: `Ware ${scene.text()}`, price: 4.99, vat: 19, tagged: true })
  return { storeIds: [storeId], ean, reason: scene.text() }
}

/** Requests for operations about tags, devices and agents. */
export const PROTECTION_RECIPES: Readonly<Record<string, Recipe>> = {
  verifySecurityTagDeactivation: async (scene) => ({
    purchaseId: await paidPurchase(scene),
    deviceId: await knownOrNew(scene, 'dev', 0.1),
  }),
  verifyProtectedItem: async (scene) => ({
    deviceId: await knownOrNew(scene, 'dev', 0.1),
    protectionAction: scene.chance.one(['detach_hard_tag', 'verify_item_status', 'authorize_exit']),
    epc: await item(scene),
  }),
  redeemProtectionAuthorization: async (scene) => {
    const granted = await grant(scene)
    const redemptionId = `red-${scene.count()}`
    scene.findings.add(scene.party.name, 'redemption', redemptionId)
    return {
      replayProtectedNonce: granted?.nonce ?? 'x',
      deviceId: granted?.deviceId ?? (await knownOrNew(scene, 'dev')),
      redemptionId,
    }
  },
  revokeProtectionAuthorization: async (scene) => ({ replayProtectedNonce: (await grant(scene))?.nonce ?? 'x' }),
  resolveRedemption: async (scene) => {
    const granted = await grant(scene)
    const redemptionId = `red-${scene.count()}`
    await scene.call('redeemProtectionAuthorization', {
      replayProtectedNonce: granted?.nonce ?? 'x',
      deviceId: granted?.deviceId,
      redemptionId,
    })
    await scene.served.pass(301_000)
    return { redemptionId, outcome: 'confirmed', operatorId: await knownOrNew(scene, 'op') }
  },
  decommissionDevice: async (scene) => ({ deviceId: await MAKERS['dev']?.(scene) }),
  reportDeviceHeartbeat: async (scene) => ({ deviceId: await MAKERS['dev']?.(scene) }),
  registerProtectedItems: async (scene) => ({
    storeId: storeOf(scene),
    items: [{ epc: newEpc(scene), productId: await knownOrNew(scene, 'prd') }],
  }),
  reuseTags: async (scene) => ({
    storeId: scene.party.storeIds[0],
    tags: [{ epc: await item(scene), ean: scene.text() }],
  }),
  recallProducts: recall,
  endRecall: async (scene) => {
    const started = await scene.call('recallProducts', await recall(scene))
    return { recallId: started?.['recallId'] ?? 'x' }
  },
  fetchRecalls: (scene) => ({
    ...(scene.chance.happens(0.5) && { storeId: storeOf(scene) }),
    ...(scene.chance.happens(0.5) && { state: scene.chance.one(['active', 'ended']) }),
  }),
  fetchProtectedItem: async (scene) => ({ storeId: scene.party.storeIds[0], epc: await item(scene) }),
  updateItemStatus: async (scene) => ({
    storeId: scene.party.storeIds[0],
    epc: await item(scene),
    itemStatus: scene.chance.one(['exception_hold', 'sellable', 'returned']),
    reason: scene.text(),
  }),
  moveReceiptHome: (scene) => ({ storeId: scene.party.storeIds[0], home: 'cloud' }),
  registerOperator: (scene) => ({
    storeId: storeOf(scene),
    // Sometimes the name of another operator, which is refused.
    name: `Frau ${scene.text()}${scene.chance.happens(0.9) ? ` ${scene.count()}` : ''}`,
    // Only some operators get a PIN, because its hash takes 50 ms.
    ...(scene.chance.happens(0.1) && { pin: `4711${scene.chance.between(1_000, 9_999)}` }),
  }),
  updateOperator: async (scene) => ({ operatorId: await MAKERS['op']?.(scene), newBadge: true }),
  removeOperator: async (scene) => ({ operatorId: await MAKERS['op']?.(scene) }),
  reportProtectionEvents: (scene) => ({ events: [alarm(scene)] }),
  fetchProtectionEvents: (scene) => ({ storeId: storeOf(scene) }),
  fetchExceptions: (scene) => ({
    ...(scene.chance.happens(0.5) && { storeId: storeOf(scene) }),
    ...(scene.chance.happens(0.3) && { state: scene.chance.one(['open', 'acknowledged']) }),
    ...(scene.chance.happens(0.2) && { since: '2026-01-01T00:00:00Z', until: '2030-01-01T00:00:00+01:00' }),
  }),
  fetchAgents: (scene) => ({
    ...(scene.chance.happens(0.5) && { storeId: storeOf(scene) }),
    ...(scene.chance.happens(0.3) && { state: scene.chance.one(['active', 'forked', 'revoked']) }),
    ...(scene.chance.happens(0.2) && { online: scene.chance.happens(0.5) }),
  }),
  acknowledgeException: async (scene) => ({ exceptionId: await knownOrNew(scene, 'exc'), note: scene.text() }),
  fetchAlarms: (scene) => ({
    storeId: storeOf(scene),
    ...(scene.chance.happens(0.5) && { state: scene.chance.one(['acknowledged', 'disposed']) }),
  }),
  disposeAlarms: (scene) => ({
    storeId: storeOf(scene),
    until: '2100-01-01T00:00:00Z',
    disposition: scene.chance.one(['phantom', 'staff_error']),
  }),
  disposeAlarm: async (scene) => {
    const event = alarm(scene)
    await scene.call('reportProtectionEvents', { events: [event] })
    return { eventId: event['eventId'], disposition: 'real', operatorId: await knownOrNew(scene, 'op', 0.1) }
  },
  callHelpToAlarm: async (scene) => {
    const event = alarm(scene)
    await scene.call('reportProtectionEvents', { events: [event] })
    return { eventId: event['eventId'] }
  },
  exportEpcisEvents: (scene) => ({
    storeId: storeOf(scene),
    ...(scene.chance.happens(0.3) && { format: scene.chance.one(['json-ld', 'ndjson']) }),
  }),
  enrolEdgeAgent: async (scene) => (await enrolment(scene)).request,
  agentLogin: async (scene) => {
    const { agent } = scene.party
    return agent && scene.chance.happens(0.7) ? loginOf(scene, agent) : { agentId: agent?.agentId ?? 'agt_x' }
  },
  registerDeviceWithCode: async (scene) => {
    const { agent } = scene.party
    const made = await scene.call('createSetupCode', { storeId: agent?.storeId ?? 'st_x' })
    return { code: typeof made?.['code'] === 'string' ? made['code'] : 'X', deviceType: 'exit_gate' }
  },
  fetchSignedDocuments: ({ chance }) => (chance.happens(0.5) ? {} : { have: { keys: [0, 1], policy: [0, 3] } }),
  rotateAgentKey: (scene) => rotation(scene),
  revokeAgent: async (scene) => ({ agentId: await MAKERS['agt']?.(scene) }),
  resolveAgentFork: async (scene) => {
    const agent = await enrolAgent(scene)
    if (!agent) return { agentId: 'agt_x', decision: 'trust' }
    await fork(scene, agent)
    return { agentId: agent.agentId, decision: scene.chance.one(['trust', 'revoke']) }
  },
}

/**
 * Replaces the agent's key by a new key that is then discarded. The old key stays valid until the first use of the new
 * key.
 */
function rotation(scene: Scene): Json {
  const { agent } = scene.party
  const { x, secret } = newKey(scene.served.platform.random)
  const iat = Math.floor(scene.served.platform.clock.wall() / 1_000)
  const claims = { aud: agent?.agentId ?? '', iat, exp: iat + 300, formerKid: keyId(agent?.x ?? x) }
  return {
    publicJwk: publicKeyOf({ x }),
    proof: signDocument(DOCUMENT_KINDS.rotation, claims, createSigner(x, secret)),
  }
}

/** Sends two different rows with the same number, as two copies of a ledger do. */
async function fork(scene: Scene, agent: AgentIdentity): Promise<void> {
  const answer = await scene.call('agentLogin', await loginOf(scene, agent), 'anyone')
  const { send, platform } = scene.served
  for (let n = 0; n < 2; n++) {
    await send({
      method: 'POST',
      path: '/api/v1/reportProtectionEvents',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${String(answer?.['accessToken'])}` },
      body: JSON.stringify({ batch: firstBatch(scene, agent) }),
    })
  }
  await platform.advance(10)
}
