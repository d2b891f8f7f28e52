#!/usr/bin/env python3
"""Sends notifications with a library that providers use, unmodified, for tests.

    provider.py LIBRARY HOST PORT CA KEY KEY_ID TEAM_ID TOPIC TOKEN...

The libraries name Apple's hosts in constants: those are pointed at the local APNs from outside, and
its authority is trusted. Prints JSON: for each token its reason, `Success` for none.
"""
import asyncio
import json
import os
import ssl
import sys

HOST, PORT, CA, KEY, KEY_ID, TEAM_ID, TOPIC = sys.argv[2:9]
TOKENS = sys.argv[9:]
ALERT = {"aps": {"alert": "Hello"}}


def apns2():
    """PyAPNs2. Its HTTP/2 client, hyper, was written for Python before 3.10."""
    import collections
    import collections.abc
    for name in ("Iterable", "Mapping", "MutableMapping", "MutableSet"):
        if not hasattr(collections, name):
            setattr(collections, name, getattr(collections.abc, name))
    if not hasattr(ssl, "match_hostname"):
        ssl.match_hostname = lambda certificate, name: None  # OpenSSL has done it.
    import hyper.tls
    hyper.tls.cert_loc = CA
    from apns2.client import APNsClient, Notification
    from apns2.credentials import TokenCredentials
    from apns2.payload import Payload

    class Client(APNsClient):
        LIVE_SERVER = HOST
        DEFAULT_PORT = int(PORT)

    credentials = TokenCredentials(auth_key_path=KEY, auth_key_id=KEY_ID, team_id=TEAM_ID)
    client = Client(credentials)
    payload = Payload(alert="Hello")
    results = client.send_notification_batch(
        [Notification(token=token, payload=payload) for token in TOKENS], topic=TOPIC)
    reasons = []
    for token in TOKENS:
        result = results[token]
        reasons.append(result[0] if isinstance(result, tuple) else result)
    return reasons


def pyapns_client():
    from pyapns_client import APNSClient, IOSNotification, IOSPayload, IOSPayloadAlert
    from pyapns_client import exceptions

    class Client(APNSClient):
        BASE_URLS = {"prod": f"https://{HOST}:{PORT}"}

    client = Client(mode="prod", root_cert_path=CA, auth_key_path=KEY, auth_key_id=KEY_ID,
                    team_id=TEAM_ID)
    payload = IOSPayload(alert=IOSPayloadAlert(title="Hello", body="World"))
    notification = IOSNotification(payload=payload, topic=TOPIC)
    reasons = []
    for token in TOKENS:
        try:
            client.push(notification=notification, device_token=token)
            reasons.append("Success")
        except exceptions.APNSException as error:
            reasons.append(type(error).__name__.removesuffix("Exception"))
    client.close()
    return reasons


def kalyke():
    # Its client trusts what the system trusts.
    os.environ["SSL_CERT_FILE"] = CA
    from kalyke import ApnsClient, ApnsConfig, Payload, PayloadAlert
    from kalyke.exceptions import ApnsProviderException

    class Client(ApnsClient):
        @property
        def _base_url(self):
            return f"https://{HOST}:{PORT}"

    client = Client(use_sandbox=False, team_id=TEAM_ID, auth_key_id=KEY_ID, auth_key_filepath=KEY)
    payload = Payload(alert=PayloadAlert(title="Hello", body="World"))
    config = ApnsConfig(topic=TOPIC)

    async def send(token):
        try:
            await client.send_message(device_token=token, payload=payload, apns_config=config)
            return "Success"
        except ApnsProviderException as error:
            return type(error).__name__

    async def send_all():
        return [await send(token) for token in TOKENS]

    return asyncio.run(send_all())


def aioapns():
    from aioapns import APNs, NotificationRequest, PushType
    import aioapns.connection as connection
    for name in dir(connection):
        protocol = getattr(connection, name)
        if isinstance(protocol, type) and hasattr(protocol, "APNS_SERVER"):
            protocol.APNS_SERVER = HOST
            protocol.APNS_PORT = int(PORT)

    async def send_all():
        client = APNs(key=open(KEY).read(), key_id=KEY_ID, team_id=TEAM_ID, topic=TOPIC,
                      ssl_context=ssl.create_default_context(cafile=CA))

        async def send(token):
            response = await client.send_notification(NotificationRequest(
                device_token=token, message=ALERT, push_type=PushType.ALERT))
            return "Success" if response.is_successful else response.description

        return await asyncio.gather(*[send(token) for token in TOKENS])

    return asyncio.run(send_all())


print(json.dumps(globals()[sys.argv[1].replace("-", "_")]()))
