# Asks with the shell's own means, and works quietly in between.
read -r -p "Name of the release: " name
sleep 8
read -r -n 1 -p "Publish $name now? [y/N] " answer
echo
sleep 7
echo "Where to? ($answer)"
select place in staging production nowhere; do break; done
for file in one two three four five six; do
    echo "copying $file to $place"
    sleep 1
done
read -r -s -p "Token: " token
echo
sleep 8
echo "published ${#token}"
