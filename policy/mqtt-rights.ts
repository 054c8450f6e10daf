import { agentTopic, storeTopic, STORE_TOPICS, type AgentAddress } from './mqtt-topics.ts'

/** Rights of agents and cloud at an outside MQTT broker. */

/** What the cloud publishes and subscribes to. */
export const CLOUD_FILTER = 'untag/v1/#'
/** Shared subscriptions of the cloud. */
export const SHARED_FILTER = '$share/+/untag/v1/#'

/** Topics that the agent publishes. */
export function publishTopics({ storeId, agentId }: AgentAddress): string[] {
  return [agentTopic(storeId, agentId, 'events'), agentTopic(storeId, agentId, 'state')]
}

/** Topics of the agent that it subscribes to. */
export function agentTopics({ storeId, agentId }: AgentAddress): string[] {
  return [agentTopic(storeId, agentId, 'ack'), agentTopic(storeId, agentId, 'command')]
}

/** Topics of the store that its agents subscribe to. */
export function storeTopics(storeId: string): string[] {
  return STORE_TOPICS.map((name) => storeTopic(storeId, name))
}
