/** MQTT topics and their access rules (ADR agents). */

const ROOT = 'untag/v1'

/** Topics of one agent. The agent writes `events` and `state`; the cloud writes `ack` and `command`. */
export const AGENT_TOPICS = ['events', 'ack', 'state', 'command'] as const
type AgentTopic = (typeof AGENT_TOPICS)[number]

/** Topics of a store, written by the cloud and retained: signed documents or their heads. */
export const STORE_TOPICS = ['fresh', 'policy', 'keys', 'items', 'deny'] as const
export type StoreTopic = (typeof STORE_TOPICS)[number]

/** A topic of one agent. */
export function agentTopic(storeId: string, agentId: string, name: AgentTopic): string {
  return `${ROOT}/${storeId}/${agentId}/${name}`
}

/** A topic that all agents of a store may read. */
export function storeTopic(storeId: string, name: StoreTopic): string {
  return `${ROOT}/${storeId}/${name}`
}

type ParsedTopic =
  | { storeId: string; agentId: string; name: AgentTopic }
  | { storeId: string; agentId: null; name: StoreTopic }

/** Parses a topic of untag; undefined for other topics. */
export function parseTopic(topic: string): ParsedTopic | undefined {
  const [root, version, storeId, second, third, ...rest] = topic.split('/')
  if (`${root}/${version}` !== ROOT || !storeId || !second || rest.length > 0) return undefined
  if (third === undefined) return isOneOf(STORE_TOPICS, second) ? { storeId, agentId: null, name: second } : undefined
  return isOneOf(AGENT_TOPICS, third) ? { storeId, agentId: second, name: third } : undefined
}

/** Topics with which the cloud processes at one outside broker find each other and test the broker. */
const CLOUD_TOPICS = ['alive', 'end', 'probe', 'probe-shared', 'probe-size', 'probe-retained'] as const
export type CloudTopic = (typeof CLOUD_TOPICS)[number]

/** A topic of one cloud process. Only the cloud may use it. */
export function cloudTopic(processId: string, name: CloudTopic): string {
  return `${ROOT}/cloud/${processId}/${name}`
}

/** Parses a topic of a cloud process; undefined for others. */
export function parseCloudTopic(topic: string): { processId: string; name: CloudTopic } | undefined {
  const [root, version, cloud, processId, name, ...rest] = topic.split('/')
  if (`${root}/${version}/${cloud}` !== `${ROOT}/cloud` || !processId || !name || rest.length > 0) return undefined
  return isOneOf(CLOUD_TOPICS, name) ? { processId, name } : undefined
}

export interface AgentAddress {
  storeId: string
  agentId: string
}

/** True if the agent may publish to the topic: its own `events` or `state`. */
export function mayPublish({ storeId, agentId }: AgentAddress, topic: string): boolean {
  return topic === agentTopic(storeId, agentId, 'events') || topic === agentTopic(storeId, agentId, 'state')
}

/**
 * True if the agent may subscribe to the filter: its own `ack` or `command`, or a topic of its store. Wildcards are
 * forbidden.
 */
export function maySubscribe({ storeId, agentId }: AgentAddress, filter: string): boolean {
  const parsed = parseTopic(filter)
  if (!parsed || parsed.storeId !== storeId) return false
  return parsed.agentId === null || (parsed.agentId === agentId && (parsed.name === 'ack' || parsed.name === 'command'))
}

function isOneOf<T extends string>(list: readonly T[], text: string): text is T {
  return (list as readonly string[]).includes(text)
}

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
