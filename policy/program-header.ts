/** Header of `/healthz` by which `untag doctor` recognises untag's own programs: `cloud; mqtt=1883` or `agent`. */
export const PROGRAM_HEADER = 'x-untag'

/** An untag program that answers at a port. */
export interface RunningProgram {
  program: 'cloud' | 'agent'
  /** Port of the cloud's broker. */
  mqttPort?: number
}

/** Formats the header. */
export function programHeader({ program, mqttPort }: RunningProgram): string {
  return mqttPort === undefined ? program : `${program}; mqtt=${mqttPort}`
}

/** Parses the header. Undefined if the header is missing or another program sent it. */
export function readProgramHeader(value: string | null): RunningProgram | undefined {
  const [, program, mqttPort] = /^(cloud|agent)(?:; mqtt=(\d{1,5}))?$/.exec(value ?? '') ?? []
  if (program !== 'cloud' && program !== 'agent') return undefined
  return { program, ...(mqttPort !== undefined && { mqttPort: Number(mqttPort) }) }
}
