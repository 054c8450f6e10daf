import { printLine, printReady } from '../../host/output.ts'
import { simulatedPsp } from '../../simulators/services/psp.ts'
import type { Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { simulatePspOptions } from '../../host/settings/tools.ts'
import type { PspName } from '../../simulators/services/psp-books.ts'
import { stopOnSignals } from '../../host/shutdown.ts'

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
