import type { PaymentProvider } from './provider.ts'
import { adyen } from './providers/adyen.ts'
import { custom } from './providers/custom.ts'
import { klarna } from './providers/klarna.ts'
import { mollie } from './providers/mollie.ts'
import { paypal } from './providers/paypal.ts'
import { stripe } from './providers/stripe.ts'
import { sumup } from './providers/sumup.ts'
import { worldline } from './providers/worldline.ts'

/** Providers of the specification. */
export const PROVIDER_NAMES = ['stripe', 'adyen', 'mollie', 'paypal', 'klarna', 'sumup', 'worldline', 'custom'] as const
type ProviderName = (typeof PROVIDER_NAMES)[number]

export const PROVIDERS: Readonly<Record<ProviderName, PaymentProvider>> = {
  stripe,
  adyen,
  mollie,
  paypal,
  klarna,
  sumup,
  worldline,
  custom,
}

/** Finds a provider by name; undefined if there is none. */
export function providerNamed(name: string): PaymentProvider | undefined {
  const known = PROVIDER_NAMES.find((each) => each === name)
  return known && PROVIDERS[known]
}
