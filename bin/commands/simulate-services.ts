import { printLine, printReady } from '../../host/output.ts'
import { simulatedPsp } from '../../simulators/services/psp.ts'
import { type Values, WrongUsage } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { simulatePspOptions, SIMULATE_VENDOR_OPTIONS } from '../../host/settings/tools.ts'
import type { PspName } from '../../simulators/services/psp-books.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { businessCentralSystem } from '../../simulators/services/erp-businesscentral.ts'
import { erpnextSystem } from '../../simulators/services/erp-erpnext.ts'
import { odooSystem } from '../../simulators/services/erp-odoo.ts'
import { sapB1System } from '../../simulators/services/erp-sapb1.ts'
import { genericSystem } from '../../simulators/services/generic-system.ts'
import { cloverSystem } from '../../simulators/services/pos-clover.ts'
import { lightspeedSystem } from '../../simulators/services/pos-lightspeed.ts'
import { shopifySystem } from '../../simulators/services/pos-shopify.ts'
import { squareSystem } from '../../simulators/services/pos-square.ts'
import { sumupSystem } from '../../simulators/services/pos-sumup.ts'
import type { SimulatedVendor, VendorOptions } from '../../simulators/services/vendor-server.ts'

/** Simulates a payment provider. Prints the values for `configurePSP`, and a line for each request and notification. */
export async function runSimulatePsp({
  host,
  port,
  provider,
  storeId,
  baseUrl,
}: Values<ReturnType<typeof simulatePspOptions<PspName>>>): Promise<void> {
  const { clock } = realPlatform()
  const psp = await simulatedPsp({
    dialect: provider,
    lastNumber: Math.floor(clock.wall() / 1_000),
    host,
    port,
    notifyUrl: () => `${baseUrl.replace(/\/+$/, '')}/notify/${provider}/${storeId ?? 'nobody'}`,
    nowMs: () => clock.wall(),
    onRequest: printLine,
  })
  stopOnSignals(() => psp.close())
  printReady({ baseUrl: psp.baseUrl, provider, config: psp.config() })
}

type Start = (options: VendorOptions) => Promise<SimulatedVendor>

const SYSTEMS: Readonly<Record<'pos' | 'erp', Readonly<Record<string, Start>>>> = {
  pos: {
    generic: genericSystem,
    shopify: shopifySystem,
    square: squareSystem,
    lightspeed: lightspeedSystem,
    clover: cloverSystem,
    sumup: sumupSystem,
  },
  erp: {
    generic: genericSystem,
    odoo: odooSystem,
    erpnext: erpnextSystem,
    businesscentral: businessCentralSystem,
    sapb1: sapB1System,
  },
}

/**
 * Serves a simulated till or ERP system. The ready line of the command contains the accepted credentials. Throws
 * `WrongUsage` for an unknown system.
 */
export async function runSimulateVendor(
  side: 'pos' | 'erp',
  system: string,
  { host, port }: Values<typeof SIMULATE_VENDOR_OPTIONS>,
): Promise<void> {
  const start = Object.hasOwn(SYSTEMS[side], system) ? SYSTEMS[side][system] : undefined
  if (!start) throw new WrongUsage([`SYSTEM must be one of ${Object.keys(SYSTEMS[side]).join(', ')}, not "${system}"`])
  const vendor = await start({ host, port, pageSize: 100 })
  stopOnSignals(() => vendor.close())
  printReady({ url: vendor.baseUrl, system, credentials: vendor.credentials })
}
