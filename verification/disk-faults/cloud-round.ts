import { injectFault } from './armed.ts'
import { taggedProduct, until, type Answer, type FaultStore } from './rig.ts'
import type { FaultPoint, RoundResult } from './aim.ts'

/** Where the cloud's round sells: a store without an agent, so that the cloud itself redeems. */
export interface CloudRoundStore {
  storeId: string
  deviceId: string
  ean: string
}

/** A device and a product of the store that has no agent. */
export async function prepareCloudRound(rig: FaultStore): Promise<CloudRoundStore> {
  const storeId = rig.otherStoreId
  const { devices } = (await rig.call('fetchDevices', { storeId })) as {
    devices: { deviceId: string; deviceType: string }[]
  }
  const known = devices.find((d) => d.deviceType === 'pos_deactivator')?.deviceId
  const made =
    known ?? (await rig.call('registerDevice', { storeId, deviceType: 'pos_deactivator', name: 'Kasse 1' }))['deviceId']
  return { storeId, deviceId: String(made), ean: await taggedProduct(rig.call, storeId) }
}

const SETTLE_WITHIN_MS = 60_000
/** Valid statuses during a disk fault. The cloud may also stop. */
const WHILE_FAILING: ReadonlySet<number> = new Set([200, 503])

/** A purchase from check-in to the redeemed token while the cloud's calls fail, and the same requests again when they do not. */
export async function cloudRound(
  rig: FaultStore,
  till: CloudRoundStore,
  aim: FaultPoint,
  name: string,
): Promise<RoundResult> {
  const broken: string[] = []
  const given = new Map<string, string>()
  const armed = await injectFault(aim, () => rig.cloud, rig.startCloud)
  if (rig.cloud.isRunning) {
    await sell(till, name, async (step, operation, body) => {
      const answer = rig.cloud.isRunning ? await rig.ask(operation, body, `${name}-${step}`) : undefined
      if (answer && !WHILE_FAILING.has(answer.status))
        broken.push(`${operation} answered ${answer.status} to a fault of the disk: ${answer.text}`)
      if (answer?.status === 200) given.set(step, answer.text)
      return answer
    })
  }
  const hit = await armed.disarm()
  let ended = false

  let redeemed: Answer | undefined
  const isSold = await sell(till, name, async (step, operation, body) => {
    // The same request may be under way still, as the cloud has it.
    const answer = await until(
      operation,
      async () => {
        if (!rig.cloud.isRunning) {
          ended = aim.mode === 'working'
          // Retries as a service manager does, because the former process may still hold the port.
          const isStarted = await rig.startCloud().then(
            () => true,
            () => false,
          )
          if (!isStarted) return false
        }
        const tried = await rig.ask(operation, body, `${name}-${step}`)
        return tried !== undefined && tried.status !== 503 && !tried.text.includes('idempotency_in_progress') && tried
      },
      SETTLE_WITHIN_MS,
    ).catch(() => undefined)
    if (answer?.status !== 200)
      broken.push(`${operation} cannot be done after the fault: ${answer?.text ?? 'nobody answers'}`)
    const before = given.get(step)
    if (before !== undefined && answer?.text !== before)
      broken.push(`${operation} was answered ${before} and now ${answer?.text ?? ''}`)
    if (step === 'redeem') redeemed = answer
    return answer
  })
  if (isSold && redeemed) await checkUsedOnce(rig, till, name, broken)
  return { hit, ended, broken }
}

type Step = (step: string, operation: string, body: object) => Promise<Answer | undefined>

/** Goes as far as it is answered; true when it came to the end. */
async function sell({ storeId, deviceId, ean }: CloudRoundStore, name: string, ask: Step): Promise<boolean> {
  const checkedIn = await ask('in', 'checkIn', { storeId, userId: name })
  if (checkedIn?.status !== 200) return false
  const checkout = await ask('checkout', 'startCheckout', {
    sessionId: checkedIn.body['sessionId'],
    items: [{ ean, quantity: 1 }],
  })
  if (checkout?.status !== 200) return false
  const transactionId = checkout.body['transactionId']
  const paid = await ask('pay', 'completeTestCheckout', { transactionId })
  if (paid?.status !== 200) return false
  const verified = await ask('verify', 'verifySecurityTagDeactivation', { purchaseId: transactionId, deviceId })
  if (verified?.status !== 200) return false
  const authorizationToken = verified.body['authorizationToken']
  const redeemed = await ask('redeem', 'redeemProtectionAuthorization', {
    authorizationToken,
    deviceId,
    redemptionId: name,
    outcome: 'confirmed',
  })
  return redeemed?.status === 200
}

/** The token that was redeemed is not redeemed again under another name. */
async function checkUsedOnce(rig: FaultStore, till: CloudRoundStore, name: string, broken: string[]): Promise<void> {
  const { deviceId } = till
  const verify = await rig.ask('verifySecurityTagDeactivation', await purchaseOf(rig, till, name), `${name}-verify`)
  const answer = await rig.ask('redeemProtectionAuthorization', {
    authorizationToken: verify?.body['authorizationToken'],
    deviceId,
    redemptionId: `${name}-again`,
    outcome: 'confirmed',
  })
  if (answer?.status === 200) broken.push(`a token was redeemed twice: ${answer.text}`)
}

async function purchaseOf(rig: FaultStore, { storeId, deviceId, ean }: CloudRoundStore, name: string): Promise<object> {
  const checkedIn = await rig.ask('checkIn', { storeId, userId: name }, `${name}-in`)
  const checkout = await rig.ask(
    'startCheckout',
    { sessionId: checkedIn?.body['sessionId'], items: [{ ean, quantity: 1 }] },
    `${name}-checkout`,
  )
  return { purchaseId: checkout?.body['transactionId'], deviceId }
}
