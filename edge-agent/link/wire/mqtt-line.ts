/** One connection to the broker. If the connection is lost, the agent opens a new connection. */
export interface MqttLine {
  /** Publishes a message without confirmation. */
  publish(topic: string, payload: string, options: { retain: boolean }): void
  subscribe(topics: readonly string[]): void
  close(): void
}

export interface MqttLineOptions {
  url: string
  clientId: string
  username: string
  password: string
  /** Certificates of a private CA, PEM. Default: the public CAs of the machine. */
  ca?: string
  will: { topic: string; payload: string }
  onMessage(topic: string, payload: string): void
  /** Called once, when the line has closed. */
  onClosed(why: string): void
}

/** Opens a line, or rejects. The real implementation is in bin/; the simulation has its own. */
export type OpenMqttLine = (options: MqttLineOptions, timeoutMs: number) => Promise<MqttLine>
