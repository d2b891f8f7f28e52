# Sourced by docs/how-to/push-types.md: an MDM push certificate in mdm.pem and mdm.key, devices in
# mdm.csv, and a simulator that trusts the certificate; broadside send talks to it.
cp -r apns mdm
(
    cd mdm
    rm client* tokens*
    request=(openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 2)
    "${request[@]}" -subj /CN=Authority -keyout ca.key -out ca.pem
    "${request[@]}" -CA ca.pem -CAkey ca.key -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 \
        -keyout server.key -out server.pem
    "${request[@]}" -CA ca.pem -CAkey ca.key \
        -subj /UID=com.apple.mgmt.External.5a09f6e0-33f1-4bc1-9b3c-9f3c2a2f5d11/CN=APSP \
        -addext 1.2.840.113635.100.6.3.2=DER:0500 -addext extendedKeyUsage=clientAuth \
        -keyout ../mdm.key -out ../mdm.pem
    chmod 600 ./*.key
)
broadside simulate --listen 127.0.0.1:0 --state mdm >mdm.txt &
background+=($!)
await grep -q '^listening' mdm.txt
awk 'BEGIN { print "token,push_magic" } { print $1 ",magic-" NR }' apns/tokens.txt >mdm.csv
broadside() {
    command broadside "$@" --endpoint "$(sed -n 's/listening on //p' mdm.txt)" --ca-file mdm/ca.pem
}
