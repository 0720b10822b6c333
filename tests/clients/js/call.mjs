// One call with AWS's own JavaScript SDK: `node call.mjs '{"service": "sts", "operation": "GetCallerIdentity", "input": {}}'`.
// Prints one JSON object: {"output": ...} or {"error": {name, message, status, requestId}}. Region, endpoint and keys come from
// the environment alone, as in a user's program. In the input {"$utf8": "text"} stands for bytes, {"$date": "..."} for a time.
import * as ec2 from "@aws-sdk/client-ec2";
import * as runtime from "@aws-sdk/client-sagemaker-runtime";
import * as sagemaker from "@aws-sdk/client-sagemaker";
import * as sts from "@aws-sdk/client-sts";

const SERVICES = {
  ec2: [ec2, ec2.EC2Client],
  sagemaker: [sagemaker, sagemaker.SageMakerClient],
  "sagemaker-runtime": [runtime, runtime.SageMakerRuntimeClient],
  sts: [sts, sts.STSClient],
};

function revive(_key, value) {
  if (value && typeof value.$utf8 === "string") return new TextEncoder().encode(value.$utf8);
  if (value && typeof value.$date === "string") return new Date(value.$date);
  return value;
}

function printable(_key, value) {
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : value;
}

async function answer({ service, operation, input }) {
  const [module, Client] = SERVICES[service];
  const client = new Client({});
  try {
    const { $metadata, ...output } = await client.send(new module[`${operation}Command`](input));
    return { output, requestId: $metadata.requestId };
  } catch (error) {
    const { httpStatusCode: status, requestId } = error.$metadata ?? {};
    return { error: { name: error.name, message: error.message, status, requestId } };
  } finally {
    client.destroy();
  }
}

console.log(JSON.stringify(await answer(JSON.parse(process.argv[2], revive)), printable));
