import type { PaymentProvider } from './provider.ts'
import { adyen } from './providers/adyen.ts'
import { custom } from './providers/custom.ts'
import { klarna } from './providers/klarna.ts'
import { mollie } from './providers/mollie.ts'
import { paypal } from './providers/paypal.ts'
import { stripe } from './providers/stripe.ts'
import { sumup } from './providers/sumup.ts'
import { worldline } from './providers/worldline.ts'

/** The providers that `configurePSP` accepts. */
export const PROVIDERS = {
  stripe,
  adyen,
  mollie,
  paypal,
  klarna,
  sumup,
  worldline,
  custom,
} satisfies Readonly<Record<string, PaymentProvider>>

type ProviderName = keyof typeof PROVIDERS
export const PROVIDER_NAMES = Object.keys(PROVIDERS) as [ProviderName, ...ProviderName[]]

/** Finds a provider by name; undefined if there is none. */
export function providerNamed(name: string): PaymentProvider | undefined {
  const known = PROVIDER_NAMES.find((each) => each === name)
  return known && PROVIDERS[known]
}
