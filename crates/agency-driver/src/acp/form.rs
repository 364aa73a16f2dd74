//! The form of a question: typed fields that are shown as questions and filled with what the user types.

use std::collections::BTreeMap;

use agency_core::plain::one_line;
use serde_json::{Map, Value, json};

use crate::conversation::AnswerError;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Form {
    fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
struct Field {
    name: String,
    /// The question for people.
    text: String,
    kind: FieldKind,
    /// The choices: the value and its label.
    options: Vec<(String, String)>,
    default: Option<Value>,
    is_required: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldKind {
    Text,
    Number,
    Integer,
    YesOrNo,
    Several,
}

impl Form {
    pub(super) fn read(message: &str, schema: &Value) -> Form {
        let none = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&none);
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let mut form = Form { fields: Vec::new() };
        for (name, property) in properties {
            let mut field = Field::read(name, property, required.contains(&name.as_str()));
            if properties.len() == 1 {
                field.text = one_line(message, 1000);
            }
            // Answers name the text of their question, so it must be unique.
            if form.fields.iter().any(|known| known.text == field.text) {
                field.text = format!("{} ({name})", field.text);
            }
            form.fields.push(field);
        }
        form
    }

    /// The questions, in the shape that both protocols use.
    pub(super) fn questions(&self) -> Vec<Value> {
        let question = |field: &Field| {
            let options: Vec<Value> =
                field.options.iter().map(|(_, label)| json!({ "label": label })).collect();
            let several = field.kind == FieldKind::Several;
            json!({ "question": field.text, "header": field.name, "options": options, "multiSelect": several })
        };
        self.fields.iter().map(question).collect()
    }

    /// The filled form. An answer names the text of its question or the field.
    pub(super) fn content(
        &self,
        answers: &BTreeMap<String, String>,
    ) -> Result<Map<String, Value>, AnswerError> {
        let mut content = Map::new();
        for field in &self.fields {
            let typed = answers.get(&field.text).or_else(|| answers.get(&field.name));
            let value = match typed {
                Some(typed) => Some(field.value(typed.trim()).ok_or(AnswerError::Unfit)?),
                None => field.default.clone(),
            };
            match value {
                Some(value) => drop(content.insert(field.name.clone(), value)),
                None if field.is_required => return Err(AnswerError::NeedsAnswers),
                None => {}
            }
        }
        Ok(content)
    }
}

impl Field {
    fn read(name: &str, property: &Value, is_required: bool) -> Field {
        let kind = match property["type"].as_str() {
            Some("number") => FieldKind::Number,
            Some("integer") => FieldKind::Integer,
            Some("boolean") => FieldKind::YesOrNo,
            Some("array") => FieldKind::Several,
            _ => FieldKind::Text,
        };
        let text = property["description"].as_str().or(property["title"].as_str()).unwrap_or(name);
        let options = match kind {
            FieldKind::YesOrNo => {
                vec![("true".to_owned(), "Yes".to_owned()), ("false".to_owned(), "No".to_owned())]
            }
            FieldKind::Several => options(&property["items"]),
            FieldKind::Text | FieldKind::Number | FieldKind::Integer => options(property),
        };
        let default = Some(property["default"].clone()).filter(|default| !default.is_null());
        Field { name: name.to_owned(), text: one_line(text, 1000), kind, options, default, is_required }
    }

    /// The typed text as a value of the field's type. `None` if it does not fit.
    fn value(&self, typed: &str) -> Option<Value> {
        match self.kind {
            FieldKind::Text if self.options.is_empty() => Some(json!(typed)),
            FieldKind::Text => self.option(typed).map(|value| json!(value)),
            FieldKind::Number => {
                typed.parse::<f64>().ok().filter(|number| number.is_finite()).map(|n| json!(n))
            }
            FieldKind::Integer => typed.parse::<i64>().ok().map(|number| json!(number)),
            FieldKind::YesOrNo => match typed.to_lowercase().as_str() {
                "yes" | "y" | "true" => Some(json!(true)),
                "no" | "n" | "false" => Some(json!(false)),
                _ => None,
            },
            FieldKind::Several => {
                let chosen = typed.split(',').map(str::trim).filter(|one| !one.is_empty());
                let values: Option<Vec<&str>> = chosen.map(|one| self.option(one)).collect();
                values.map(|values| json!(values))
            }
        }
    }

    fn option(&self, typed: &str) -> Option<&str> {
        let is_it = |(value, label): &&(String, String)| value == typed || label.eq_ignore_ascii_case(typed);
        self.options.iter().find(is_it).map(|(value, _)| value.as_str())
    }
}

fn options(property: &Value) -> Vec<(String, String)> {
    let titled = |option: &Value| {
        let value = option["const"].as_str()?.to_owned();
        let label = option["title"].as_str().unwrap_or(&value).to_owned();
        Some((value, label))
    };
    let plain = |value: &Value| Some((value.as_str()?.to_owned(), value.as_str()?.to_owned()));
    let list = |name: &str| property[name].as_array().into_iter().flatten();
    let known: Vec<_> = list("oneOf").chain(list("anyOf")).filter_map(titled).collect();
    if known.is_empty() { list("enum").filter_map(plain).collect() } else { known }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Form {
        Form::read(
            "Tell me",
            &json!({
                "properties": {
                    "name": { "type": "string", "title": "Your name" },
                    "colour": { "type": "string", "description": "Which?", "oneOf": [
                        { "const": "r", "title": "Red" }, { "const": "b", "title": "Blue" }] },
                    "count": { "type": "integer", "default": 3 },
                    "sure": { "type": "boolean" },
                    "days": { "type": "array", "items": { "enum": ["Mon", "Tue"] } },
                },
                "required": ["name"],
            }),
        )
    }

    #[test]
    fn a_form_becomes_questions_and_its_answers_get_the_types_of_its_fields() {
        let texts: Vec<String> = form()
            .questions()
            .iter()
            .filter_map(|question| question["question"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(texts, ["Your name", "Which?", "count", "sure", "days"]);
        let answers = [("Your name", "Ann"), ("Which?", "blue"), ("sure", "no"), ("days", "Mon, Tue")];
        let answers = answers.map(|(question, answer)| (question.to_owned(), answer.to_owned()));
        let content = form().content(&BTreeMap::from(answers)).map(Value::Object);
        let expected =
            json!({ "name": "Ann", "colour": "b", "count": 3, "sure": false, "days": ["Mon", "Tue"] });
        assert_eq!(content, Ok(expected));
    }

    #[test]
    fn missing_answers_and_answers_of_the_wrong_type_are_errors() {
        assert_eq!(form().content(&BTreeMap::new()), Err(AnswerError::NeedsAnswers));
        for (question, answer) in
            [("count", "many"), ("sure", "perhaps"), ("days", "Sun"), ("Which?", "green")]
        {
            let answers = BTreeMap::from([("name".into(), "Ann".into()), (question.into(), answer.into())]);
            assert_eq!(form().content(&answers), Err(AnswerError::Unfit), "{question}");
        }
    }

    #[test]
    fn a_form_with_one_field_uses_the_message_as_the_question() {
        let form = Form::read("Which branch?", &json!({ "properties": { "branch": { "type": "string" } } }));
        assert_eq!(form.questions()[0]["question"], "Which branch?");
        assert_eq!(Form::read("x", &Value::Null).content(&BTreeMap::new()), Ok(Map::new()));
    }
}
