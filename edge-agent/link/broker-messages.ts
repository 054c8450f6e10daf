import { agentTopic } from '../../policy/mqtt-topics.ts'
import type { Identity } from '../identity/identity.ts'
import { LedgerFull } from '../ledger/file/commit.ts'
import type { Log } from '../log.ts'

export interface BrokerMessagesParts {
  identity: Pick<Identity, 'agentId' | 'storeId'>
  log: Log
  onAck(ack: string): void
  onCommand(command: string): void
  onDocument(document: string): void
}

/**
 * Returns a function that passes each broker message to its handler. If the disk is full, the agent logs a warning and
 * drops the message. The cloud sends the content again.
 */
export function brokerMessages(parts: BrokerMessagesParts): (topic: string, payload: string) => void {
  const { identity, log } = parts
  const ackTopic = agentTopic(identity.storeId, identity.agentId, 'ack')
  const commandTopic = agentTopic(identity.storeId, identity.agentId, 'command')

  function handleMessage(topic: string, payload: string): void {
    if (topic === ackTopic) parts.onAck(payload)
    else if (topic === commandTopic) parts.onCommand(payload)
    else parts.onDocument(payload)
  }

  return (topic, payload) => {
    try {
      handleMessage(topic, payload)
    } catch (error) {
      if (error instanceof LedgerFull) log.warn({ topic }, 'the disk is full: a message from the broker was dropped')
      else log.error({ err: error, topic }, 'a message from the broker could not be processed')
    }
  }
}
