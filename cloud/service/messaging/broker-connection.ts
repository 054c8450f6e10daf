/** A connection of the cloud to an outside broker. If the connection is lost, the cloud opens a new one. */
export interface BrokerConnection {
  /** Publishes with QoS 1, without confirmation. */
  publish(topic: string, payload: string, options: { retain: boolean }): void
  /** Resolves to the granted QoS of each filter, or 128 for a refused one. */
  subscribe(filters: readonly string[]): Promise<readonly number[]>
  close(): void
}

export interface BrokerConnectionOptions {
  url: string
  clientId: string
  username?: string
  password?: string
  /** Certificates of a private CA, PEM. Default: the public CAs of the machine. */
  ca?: string
  onMessage(topic: string, payload: string): void
  /** Called once, when the connection has closed. */
  onClosed(why: string): void
}

/** Opens a connection, or rejects. The real implementation is in bin/; tests have their own. */
export type OpenBrokerConnection = (options: BrokerConnectionOptions, timeoutMs: number) => Promise<BrokerConnection>
