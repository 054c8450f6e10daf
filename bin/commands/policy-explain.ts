import { createClient, type AnswerOf } from '../../clients/typescript/client.ts'
import type { DeviceFacts } from '../../policy/devices.ts'
import {
  explainPolicy,
  type PolicyExplanation,
  type PolicyScenario,
  type StageDecision,
} from '../../policy/policy-explanation.ts'
import { printResult } from '../../host/output.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import type { POLICY_EXPLAIN_OPTIONS } from '../../host/settings/tools.ts'
import { fetchTrustingFile } from '../../host/tls/private-ca.ts'

type Settings = Values<typeof POLICY_EXPLAIN_OPTIONS>
type Client = ReturnType<typeof createClient>
type Device = AnswerOf<'fetchDevices'>['devices'][number]

/**
 * Prints the decisions of a device's store policy at each policy stage, with reasons. Creates neither an event nor an
 * authorization.
 */
export async function runPolicyExplain(settings: Settings): Promise<void> {
  const { key, baseUrl, deviceId, action, category, brand, priceCent, operator, json } = settings
  const missing = [
    key === undefined && '--key KEY or UNTAG_KEY is needed: a secret key',
    deviceId === undefined && '--device ID is needed',
    action === 'none' && '--action is needed: the action that the device requests',
  ]
  if (deviceId === undefined || action === 'none' || key === undefined)
    throw new WrongUsage(missing.filter((fault) => fault !== false))
  const client = createClient({ baseUrl, key, platform: { fetch: fetchTrustingFile(settings.ca) } })
  const device = await findDevice(client, settings.storeId, deviceId)
  const { policy, version } = await client.fetchProtectionPolicy({ storeId: device.storeId })
  const question = { device: factsOf(device), action, category, brand, priceCent, hasOperator: operator }
  const answer = explainPolicy(question, policy)
  const { storeId, deviceType, workflowType } = question.device
  const asked = {
    storeId,
    policyVersion: version,
    deviceId,
    deviceType,
    workflowType,
    protectionAction: action,
    category,
    brand,
    price: priceCent === undefined ? undefined : priceCent / 100,
    operator,
  }
  printResult(json, { ...asked, ...answer }, textOf(question, version, answer).trimEnd().split('\n'))
}

async function findDevice(client: Client, storeId: string | undefined, deviceId: string): Promise<Device> {
  const storeIds: string[] = []
  if (storeId !== undefined) storeIds.push(storeId)
  else for await (const store of client.pages('fetchStores', {})) storeIds.push(store.storeId)
  for (const id of storeIds) {
    for await (const device of client.pages('fetchDevices', { storeId: id }))
      if (device.deviceId === deviceId) return device
  }
  throw new Error(
    `there is no device ${deviceId} in ${storeId ?? 'any store of this key'}: untag api fetchDevices lists them`,
  )
}

/** Converts a device of the API into the facts that the rules use. */
function factsOf({
  deviceId,
  storeId,
  deviceType,
  workflowType,
  supportedTechnologies,
  agentId,
  decommissionedAt,
  ...shown
}: Device): DeviceFacts {
  const {
    canDeactivateLabel,
    canDetachHardTag,
    canReadReceiptQr,
    canReadUhfRfid,
    canReadHfNfc,
    canUnlockFixture,
    supportsOfflineAuth,
  } = shown
  const capabilities = {
    canDeactivateLabel,
    canDetachHardTag,
    canReadReceiptQr,
    canReadUhfRfid,
    canReadHfNfc,
    canUnlockFixture,
    supportsOfflineAuth,
  }
  return {
    deviceId,
    storeId,
    deviceType,
    workflowType,
    supportedTechnologies,
    capabilities,
    agentId: agentId ?? null,
    revoked: decommissionedAt !== undefined,
  }
}

function textOf(
  { device, action, category, brand, priceCent, hasOperator }: PolicyScenario,
  version: number,
  { entry, stages, offline }: PolicyExplanation,
): string {
  const goods = [
    category === undefined ? 'an item without a category' : `an item of "${category}"`,
    ...(brand === undefined ? [] : [`brand "${brand}"`]),
    priceCent === undefined ? 'price unknown' : `${(priceCent / 100).toFixed(2)} EUR`,
    ...(hasOperator ? ['with an operator'] : []),
  ]
  return [
    `${action} at ${device.deviceId} (${device.deviceType}, ${device.workflowType}): ${goods.join(', ')}`,
    `policy version ${version} of ${device.storeId}, ${entry === null ? 'which has no entry for it: defaults apply' : `entry "${entry}"`}`,
    ...stages.map(
      (each) => `${each.stage.padEnd(8)} ${each.authorized ? 'granted' : `refused   ${each.reason}: ${each.detail}`}`,
    ),
    '',
    'for a paid item with an unused release right. Without contact to the cloud the policy is fresh for 15 minutes, stale until 80 hours, then expired',
    `isolated from cloud and receipt home, with a receipt: ${offlineText(offline)}`,
    `receipts that an isolated agent honours: ${stages.map(alone).join('; ')}`,
    '',
  ].join('\n')
}

function offlineText({ authorized, reason, unknownFacts }: PolicyExplanation['offline']): string {
  const answer = authorized ? 'granted' : `refused (${reason})`
  return unknownFacts.length === 0 ? answer : `${answer}; unknown: ${unknownFacts.join(', ')}`
}

function alone({ stage, isolated }: StageDecision): string {
  return `${stage} ${isolated === null ? 'none' : `${isolated.receipts} in ${isolated.seconds} s`}`
}
