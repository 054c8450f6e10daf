import type { PaymentProvider } from './provider.ts'
import { adyen } from './providers/adyen.ts'
import { custom } from './providers/custom.ts'
import { mollie } from './providers/mollie.ts'
import { stripe } from './providers/stripe.ts'
import { worldline } from './providers/worldline.ts'

/** The providers of the specification. */
export const PROVIDER_NAMES = ['stripe', 'adyen', 'mollie', 'paypal', 'klarna', 'sumup', 'worldline', 'custom'] as const

/** Those of them that are built. */
export const PROVIDERS: ReadonlyMap<string, PaymentProvider> = new Map([custom, stripe, mollie, adyen, worldline].map((provider) => [provider.name, provider]))
