# Sourced by the pages of docs/how-to, in an empty folder: what their reader has. A simulator with 2,000
# tokens, a campaign for it in evening.json5, and a few functions. topic: the app's, if it is set before.
if [ -n "${topic-}" ]; then
    broadside simulate --listen 127.0.0.1:0 --state apns >made.txt &
    await grep -q '^listening' made.txt
    kill $! && wait $!
    sed -i "s/com.example.Broadside/$topic/" apns/config.json
fi
broadside simulate --listen 127.0.0.1:0 --state apns --issue-tokens 2000 --unregistered 0.02 >apns.txt &
background+=($!)
await grep -q '^broadside send' apns.txt
echo '{"aps":{"alert":{"title":"Good evening","body":"The news of the day"}}}' >payload.json
$(sed -n 's/ --tokens TOKENS.*//p' apns.txt) --tokens apns/tokens.txt --payload payload.json \
    --print-campaign >evening.json5
cp evening.json5 first.json5
# set_in_campaign NAME VALUE: in evening.json5.
set_in_campaign() { sed -i "s|\"$1\": .*|\"$1\": \"$2\",|" evening.json5; }
# A list whose end is far away.
for copy in {1..100}; do cat apns/tokens.txt; done >long.txt
# exits CODE COMMAND...: with that code.
exits() {
    local code=0
    "${@:2}" || code=$?
    test $code = "$1"
}
# is_under_way LEDGER: some of its rows have a response.
is_under_way() { broadside ledger stats --ledger "$1" | grep -q 'accepted *[1-9]'; }
