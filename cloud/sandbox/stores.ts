import type { ProtectionPolicy } from '../../policy/store-policy.ts'
import type { DeviceType, SecurityTagMode, WorkflowType } from '../../policy/vocabulary.ts'
import type { SandboxProgram } from './loyalty.ts'
import type { Package } from '../foundation/packages.ts'

/** The two test stores of every account (ADR 0041). Names and addresses are invented. */
export interface SandboxStore {
  readonly legalName: string
  readonly tradingName: string
  readonly street: string
  readonly city: string
  readonly postalCode: string
  readonly lat: number
  readonly lng: number
  readonly phone: string
  readonly email: string
  readonly package: Package
  readonly securityTagMode: SecurityTagMode
  readonly policy: Partial<ProtectionPolicy>
  readonly devices: readonly {
    readonly deviceType: DeviceType
    readonly name: string
    readonly workflowType?: WorkflowType
    readonly laneId?: string
    readonly gateId?: string
  }[]
  readonly loyalty: SandboxProgram
  /** Number of items to register for each tagged product. */
  readonly itemsPerProduct: number
}

export const SANDBOX_STORES: readonly SandboxStore[] = [
  {
    legalName: 'Hafenkante Handels GmbH',
    tradingName: 'Hafenkante Hamburg',
    street: 'Am Speicher 12',
    city: 'Hamburg',
    postalCode: '20457',
    lat: 53.5446,
    lng: 9.9889,
    phone: '+4940555010100',
    email: 'hamburg@hafenkante.example',
    package: 'GROW',
    securityTagMode: 'station',
    policy: {},
    devices: [
      { deviceType: 'pos_deactivator', name: 'Servicestation', laneId: 'lane_1' },
      { deviceType: 'handheld_reader', name: 'Handgerät 1' },
    ],
    loyalty: {
      name: 'Hafenkante Stempelkarte',
      type: 'stamps',
      earningMethods: ['scan_and_go', 'qr_checkin'],
      rewards: [
        { name: 'Ein Heißgetränk', cost: 5 },
        { name: '10 € Einkaufsgutschein', cost: 10 },
      ],
      tiers: [],
    },
    itemsPerProduct: 1,
  },
  {
    legalName: 'Hafenkante Handels GmbH',
    tradingName: 'Hafenkante München',
    street: 'Lindenpassage 3',
    city: 'München',
    postalCode: '80331',
    lat: 48.1372,
    lng: 11.5755,
    phone: '+4989555010200',
    email: 'muenchen@hafenkante.example',
    package: 'PRIME',
    securityTagMode: 'rfid',
    policy: {
      // The default policy denies self service. The sandbox allows self service, so that developers can try it.
      allowedActionsByCategory: {
        '*': {
          detach_hard_tag: ['self_service', 'staff_assisted', 'pos_integrated'],
          deactivate_label: ['staff_assisted', 'pos_integrated'],
          authorize_exit: ['automatic_exit'],
          suppress_alarm: ['automatic_exit', 'staff_assisted'],
          unlock_fixture: ['staff_assisted'],
        },
      },
      requiresManualOverrideAboveValue: 200,
    },
    devices: [
      { deviceType: 'pos_deactivator', name: 'Servicestation', laneId: 'lane_1' },
      { deviceType: 'self_checkout_detacher', name: 'Selbstablöser 1', laneId: 'lane_2' },
      { deviceType: 'exit_gate', name: 'Ausgang', gateId: 'gate_1' },
      { deviceType: 'cabinet_unlocker', name: 'Vitrine Elektronik' },
    ],
    loyalty: {
      name: 'Hafenkante Club',
      type: 'tier',
      earningMethods: ['scan_and_go', 'click_collect', 'store_checkin', 'qr_checkin'],
      rewards: [
        { name: '5 € Einkaufsgutschein', cost: 250 },
        { name: 'Kostenlose Änderungsschneiderei', cost: 1_000 },
      ],
      tiers: [
        { name: 'Bronze', threshold: 100 },
        { name: 'Silber', threshold: 500 },
        { name: 'Gold', threshold: 2_000 },
      ],
    },
    itemsPerProduct: 3,
  },
]
