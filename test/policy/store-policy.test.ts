import { describe, expect, it } from 'vitest'
import { completeCapabilities } from '../../policy/devices.ts'
import { DEFAULT_POLICY, policyStage, ProtectionPolicy, riskClassOf } from '../../policy/store-policy.ts'

describe('the protection policy', () => {
  it('has the documented default limits', () => {
    expect(DEFAULT_POLICY).toEqual({
      allowedActionsByCategory: {},
      requiresManualOverrideAboveValue: null,
      requiresStaffForBrand: [],
      offline: { maxRiskClass: 2, hardCount: 20, maxIsolatedSeconds: 14_400, storeBound: 'risk' },
      unknownTag: 'notify',
      gate: {
        severity: [],
        ownPrefixes: [],
        ownMasks: [],
        alarmMasks: [],
        bulk: { tags: 5, seconds: 3 },
        replenishment: { tags: 100, seconds: 10, muteSeconds: 120 },
      },
      operatorOverridesPerHour: 10,
      spotCheckRate: 0,
      tillSales: { agents: [], salesPerHour: 1_000, valuePerHour: 100_000, codes: 'barrier', passByProduct: 0 },
      home: 'cloud',
      homeEpoch: 0,
    })
    expect(ProtectionPolicy.parse(DEFAULT_POLICY)).toEqual(DEFAULT_POLICY)
  })

  it.each([
    [{ requiresManualOverrideAboveValue: 1.005 }],
    [{ requiresManualOverrideAboveValue: -1 }],
    [{ allowedActionsByCategory: { a: { fly: ['self_service'] } } }],
    [{ allowedActionsByCategory: { a: { detach_hard_tag: ['anyhow'] } } }],
    [{ offline: { maxRiskClass: 4 } }],
    [{ offline: { maxIsolatedSeconds: 259_201 } }],
    [{ storeLimit: 3 }],
  ])('refuses %j', (policy) => {
    expect(ProtectionPolicy.safeParse(policy).success).toBe(false)
  })

  it('derives the risk class from the purchase total', () => {
    expect([0, 4_999, 5_000, 19_999, 20_000, 99_999, 100_000, 1e8].map(riskClassOf)).toEqual([0, 0, 1, 1, 2, 2, 3, 3])
  })

  it('becomes stale after 15 minutes and expires after 80 hours', () => {
    expect([0, 900, 901, 80 * 3_600, 80 * 3_600 + 1].map(policyStage)).toEqual([
      'fresh',
      'fresh',
      'stale',
      'stale',
      'expired',
    ])
  })
})

describe('completeCapabilities', () => {
  it('uses the stated values, and the defaults of the type for the others', () => {
    expect(completeCapabilities('pos_deactivator', {}).capabilities).toMatchObject({
      canDeactivateLabel: true,
      canDetachHardTag: false,
      canReadUhfRfid: false,
    })
    expect(completeCapabilities('self_checkout_detacher', {}).supportedTechnologies).toContain('uhf_rfid')
  })

  it('derives readers from stated technologies, and technologies from stated readers', () => {
    expect(
      completeCapabilities('self_checkout_detacher', { supportedTechnologies: ['hf_nfc'] }).capabilities,
    ).toMatchObject({ canReadUhfRfid: false, canReadHfNfc: true })
    expect(completeCapabilities('pos_deactivator', { canReadUhfRfid: true }).supportedTechnologies).toEqual([
      'am',
      'rf',
      'uhf_rfid',
    ])
    expect(completeCapabilities('exit_gate', { canReadUhfRfid: false }).supportedTechnologies).toEqual([])
  })

  it('prefers an explicit value to a derived one', () => {
    const { capabilities } = completeCapabilities('exit_gate', {
      supportedTechnologies: ['uhf_rfid'],
      canReadUhfRfid: false,
    })
    expect(capabilities.canReadUhfRfid).toBe(false)
  })
})
