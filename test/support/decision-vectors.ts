import { readFileSync } from 'node:fs'
import type { DecisionFacts, ItemFacts } from '../../policy/decide.ts'
import type { DeviceCapabilities, DeviceFacts } from '../../policy/devices.ts'
import { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { DenyReason, ItemFactName } from '../../policy/vocabulary.ts'

interface Change {
  facts?: Partial<DecisionFacts>
  device?: Partial<Omit<DeviceFacts, 'capabilities'>> & { capabilities?: Partial<DeviceCapabilities> }
  item?: Record<string, unknown>
  policy?: Record<string, unknown>
}

interface File {
  base: { facts: DecisionFacts; device: DeviceFacts; item: ItemFacts; policy: Record<string, unknown> }
  vectors: (Change & { name: string; expect: DenyReason | 'allowed'; unknownFacts?: ItemFactName[] })[]
}

export interface DecisionVector {
  name: string
  facts: DecisionFacts
  policy: ProtectionPolicy
  expect: DenyReason | 'allowed'
  unknownFacts: ItemFactName[]
}

/** The vectors of policy/vectors/decisions.json, each as whole facts and policy. */
export function decisionVectors(): DecisionVector[] {
  const url = new URL('../../policy/vectors/decisions.json', import.meta.url)
  const { base, vectors } = JSON.parse(readFileSync(url, 'utf8')) as File
  return vectors.map(({ name, expect, unknownFacts = [], facts, device, item, policy }) => {
    const capabilities = { ...base.device.capabilities, ...device?.capabilities }
    const whole: DecisionFacts = {
      ...base.facts,
      device: { ...base.device, ...device, capabilities },
      item: itemOf(base.item, item),
      ...facts,
    }
    return { name, expect, unknownFacts, facts: whole, policy: ProtectionPolicy.parse({ ...base.policy, ...policy }) }
  })
}

function itemOf(base: ItemFacts, change: Record<string, unknown> = {}): ItemFacts {
  const item: Record<string, unknown> = { ...base, ...change }
  for (const [name, value] of Object.entries(change)) {
    if (value === null && name !== 'status' && name !== 'priceBelowCent') delete item[name]
  }
  return item as unknown as ItemFacts
}
