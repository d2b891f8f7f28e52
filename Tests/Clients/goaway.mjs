// Pushes 200 notifications over Node's http2 and repeats what a GOAWAY or REFUSED_STREAM says was not
// processed, until each has its response. Prints the number of each that was accepted.
//
//     node goaway.mjs ADDRESS PROVIDER_TOKEN TOPIC CA_FILE
import { connect } from "node:http2";
import { readFileSync } from "node:fs";

const [address, token, topic, file] = process.argv.slice(2);
const options = { ca: readFileSync(file) };
const REFUSED_STREAM = 7;
let session;

function usable() {
  if (!session || session.closed || session.destroyed || session.ended) {
    const opened = connect("https://" + address, options);
    opened.on("error", () => {});
    opened.on("goaway", () => { opened.ended = true; });
    session = opened;
  }
  return session;
}

function attempt(number) {
  return new Promise((resolve) => {
    const request = usable().request({
      ":method": "POST", ":path": "/3/device/" + number.toString(16).padStart(64, "0"),
      authorization: "bearer " + token, "apns-topic": topic,
      "apns-id": "00000000-0000-4000-8000-" + String(number).padStart(12, "0"),
    });
    let status = 0;
    request.on("response", (headers) => { status = headers[":status"]; });
    request.on("error", () => {});
    request.on("close", () => resolve({ status, code: request.rstCode }));
    request.resume();
    request.end(JSON.stringify({ aps: { alert: "x".repeat(500) } }));
  });
}

async function push(number) {
  for (;;) {
    const { status, code } = await attempt(number);
    if (status === 200) return console.log(number);
    if (status !== 0 || code !== REFUSED_STREAM) return console.error(number, status, code);
  }
}

// One first: with a provider token there is one stream until its response.
await push(0);
await Promise.all(Array.from({ length: 199 }, (_, index) => push(index + 1)));
session.close();
