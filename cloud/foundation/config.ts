/** What a cloud can be told. Read from options and environment in bin/, checked there; see docs/reference/configuration.md. */
export interface CloudConfig {
  /** Address of the API root as clients and QR codes use it, such as `https://shop.example/api/v1`. */
  readonly baseUrl: string
  /** Address of the MQTT broker as agents reach it. */
  readonly mqttUrl: string
  /** Requests per second of one key; 0: no limit. The burst is twice that. */
  readonly rateLimit: number
  /** Requests per second of one publishable key and client address. */
  readonly publishableRateLimit: number
  /** Checks every answer against its schema: for tests, not for production. */
  readonly checkAnswers: boolean
  /** Sends to private, loopback and other closed addresses too: for tests and demonstrations. */
  readonly allowPrivateTargets: boolean
  /** Addresses of proxies whose X-Forwarded-For is believed. */
  readonly trustedProxies: readonly string[]
}

/** Scheme, host and port of the public address. */
export function originOf(config: CloudConfig): string {
  return new URL(config.baseUrl).origin
}
